package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// The program is this test's binary under the program's name, so that scripts and
// pseudo-terminals run it as a shell does.
func TestMain(m *testing.M) {
	testscript.Main(shutdown{m}, map[string]func(){"leasereaper": main})
}

// shutdown ends the server after the tests.
type shutdown struct{ *testing.M }

func (s shutdown) Run() int {
	code := s.M.Run()
	if err := pgtest.Shutdown(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// A command would do something else than its help says, give a script the wrong
// exit status, or change a table that nobody has said yes to.
func TestCommands(t *testing.T) {
	t.Parallel()

	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		Setup:               setUp,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"sql": cmdSQL, "status": cmdStatus, "replace": cmdReplace, "shop": cmdShop,
		},
	})
}

// poolKey is where a script's database is.
type poolKey struct{}

// setUp gives each script a database of its own with the reference schema.
func setUp(env *testscript.Env) error {
	database, err := pgtest.Open(context.Background())
	if err != nil {
		return err
	}
	env.Defer(func() {
		if err := database.Close(); err != nil {
			env.T().Log(err)
		}
	})
	env.Values[poolKey{}] = database.Pool
	address, err := connString(database.Pool)
	if err != nil {
		return err
	}
	env.Setenv("DATABASE_URL", address)
	env.Setenv("TZ", "UTC")
	passOn(env)
	return nil
}

// passOn gives a script what --embedded needs to find or start a server.
func passOn(env *testscript.Env) {
	env.Setenv("TMPDIR", os.TempDir())
	if cache, err := os.UserCacheDir(); err == nil {
		env.Setenv("XDG_CACHE_HOME", cache)
	}
	for _, name := range []string{"PGTEST_DATABASE_URL", "PGTEST_BIN"} {
		if value := os.Getenv(name); value != "" {
			env.Setenv(name, value)
		}
	}
}

// cmdSQL runs a statement in the script's database: sql 'select ...'. Rows are
// printed as PostgreSQL's text, one a line, cells apart by a bar.
func cmdSQL(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: sql statement")
	}
	pool, ok := ts.Value(poolKey{}).(*pgxpool.Pool)
	if !ok {
		ts.Fatalf("there is no database")
	}
	rows, err := pool.Query(context.Background(), args[0], pgx.QueryExecModeSimpleProtocol)
	ts.Check(err)
	defer rows.Close()
	for rows.Next() {
		var cells []string
		for _, value := range rows.RawValues() {
			cells = append(cells, string(value))
		}
		fmt.Fprintln(ts.Stdout(), strings.Join(cells, "|"))
	}
	ts.Check(rows.Err())
}

// cmdStatus runs a program and wants an exit status: status 3 leasereaper apply.
func cmdStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status code program [args...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit status %d, want %d", got, want)
	}
}

// cmdShop runs the program on the mapped queue of mapping.txtar: shop 0 apply.
func cmdShop(ts *testscript.TestScript, neg bool, args []string) {
	mapped := []string{
		args[0], "leasereaper", "--queue=shop.jobs", "--settings=shop.settings", "--letters=shop.dead_jobs",
		"--states=leased=running,retry_waiting=retryable,dead_letter=discarded",
		"--columns=job_id=id,job_kind=type,state=status,attempts=tries,max_attempts=max_tries",
		"--columns=scheduled_at=run_at,lease_owner=locked_by,lease_until=locked_until,last_error=failure",
	}
	cmdStatus(ts, neg, append(mapped, args[1:]...))
}

// cmdReplace replaces a text in a file: replace old new file.
func cmdReplace(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: replace old new file")
	}
	text := ts.ReadFile(args[2])
	if !strings.Contains(text, args[0]) {
		ts.Fatalf("%s has no %q", args[2], args[0])
	}
	const readable = 0o644
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(strings.Replace(text, args[0], args[1], 1)), readable))
}

// connString returns a connection string for the database of a pool.
func connString(pool *pgxpool.Pool) (string, error) {
	config := pool.Config().ConnConfig
	if !strings.Contains(config.ConnString(), "://") {
		return config.ConnString() + " dbname=" + config.Database, nil
	}
	parsed, err := url.Parse(config.ConnString())
	if err != nil {
		return "", err
	}
	parsed.Path = "/" + config.Database
	return parsed.String(), nil
}

// execute runs a statement.
func execute(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	_, err := pool.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}
