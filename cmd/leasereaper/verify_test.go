//go:build unix

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// Who pipes the SQL of verify into psql would get syntax errors, or half of it.
func TestPsqlRunsTheSQLOfVerify(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	execute(t, pool, "drop index job_queue_lease_until_idx")
	execute(t, pool, "alter table job_queue drop column last_error")
	execute(t, pool, "insert into queue_config (key, value) values ('queue.lease.reaper_enabled', 'perhaps')")
	execute(t, pool, `alter table job_queue alter column attempts drop not null`)
	execute(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('mail', 'leased', 'w', 'infinity')`)

	for range 2 { // what the server plans is only looked at when nothing else is wrong
		runSQL(t, pool, verifySQL(t, pool))
	}
	rest := verifySQL(t, pool)
	for line := range strings.Lines(rest) {
		require.True(t, strings.HasPrefix(line, "-- ") || strings.TrimSpace(line) == "", rest)
	}
}

// verifySQL is what verify --sql prints.
func verifySQL(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "leasereaper", "verify", "--sql")
	command.Env = append(os.Environ(), "DATABASE_URL="+address(t, pool))
	var errs bytes.Buffer
	command.Stderr = &errs
	out, _ := command.Output()
	require.NotContains(t, errs.String(), "SQLSTATE")
	return string(out)
}

// runSQL gives SQL to psql, or where that is not installed to the server, a statement at a
// time.
func runSQL(t *testing.T, pool *pgxpool.Pool, sql string) {
	t.Helper()
	psql := findPsql()
	if psql == "" {
		for statement := range strings.SplitSeq(sql, ";\n") {
			execute(t, pool, statement, pgx.QueryExecModeSimpleProtocol)
		}
		return
	}
	command := exec.CommandContext(t.Context(), psql, "--no-psqlrc", "--set=ON_ERROR_STOP=1", address(t, pool))
	command.Stdin = strings.NewReader(sql)
	out, err := command.CombinedOutput()
	require.NoError(t, err, "%s\n%s", sql, out)
}

func findPsql() string {
	if path, err := exec.LookPath("psql"); err == nil {
		return path
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/psql")
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}
