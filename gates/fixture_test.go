package gates_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

func publicParts(err *gates.ValueError) gates.ValueError {
	return gates.ValueError{Key: err.Key, Value: err.Value}
}

const (
	substrate = gates.SubstrateEnabled
	enabled   = gates.ReaperEnabled
	dryRun    = gates.DryRunOnly
)

// plain lowers a value and trims the space around it, byte by byte.
func plain(value string) string {
	lowered := []byte(value)
	for i, b := range lowered {
		if 'A' <= b && b <= 'Z' {
			lowered[i] |= 0x20
		}
	}
	return strings.Trim(string(lowered), "\x09\x0a\x0b\x0c\x0d\x20")
}

// settingsTable makes a settings table and returns its name.
func settingsTable(t *testing.T, pool *pgxpool.Pool, name, column string) pgx.Identifier {
	t.Helper()
	table := pgx.Identifier{name}
	reapertest.Exec(t, pool, `create table `+table.Sanitize()+` (
		key text primary key, value `+column+`, updated_at timestamptz, updated_by text)`)
	return table
}

// patience bounds the waits of tests. Only a failing test waits this long.
const patience = 20 * time.Second

func open() map[string]string {
	return map[string]string{substrate: "true", enabled: "true", dryRun: "false", gates.BackoffBaseSec: "10"}
}

// running is a transaction that was seen to wait for a lock.
type running struct{ done chan error }

func (r running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.done:
		return err
	case <-time.After(patience):
		require.Fail(t, "it waits for ever")
		return nil
	}
}

// start runs a statement and returns when it waits for a lock.
func start(t *testing.T, pool *pgxpool.Pool, sql string) running {
	t.Helper()
	return startFunc(t, pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := tx.Exec(ctx, sql)
		return err
	})
}

// startFunc runs do in a transaction and returns when that waits for a lock.
func startFunc(t *testing.T, pool *pgxpool.Pool, do func(context.Context, pgx.Tx) error) running {
	t.Helper()
	tx := reapertest.Begin(t, pool)
	pid := tx.Conn().PgConn().PID()
	r := running{done: make(chan error, 1)}
	go func() {
		err := do(t.Context(), tx)
		if err == nil {
			err = tx.Commit(t.Context())
		}
		r.done <- err
	}()
	require.Eventually(t, func() bool {
		var waits bool
		err := pool.QueryRow(t.Context(),
			`select exists (select from pg_locks where pid = $1 and not granted)`, pid).Scan(&waits)
		return len(r.done) > 0 || err == nil && waits
	}, patience, 5*time.Millisecond, "it neither waits for a lock nor ends")
	require.Empty(t, r.done, "it did not wait for a lock")
	return r
}

func end(t *testing.T, tx pgx.Tx, undo bool) {
	t.Helper()
	if undo {
		require.NoError(t, tx.Rollback(t.Context()))
		return
	}
	require.NoError(t, tx.Commit(t.Context()))
}

// impossible returns names that no table can have.
func impossible() map[string]pgx.Identifier {
	return map[string]pgx.Identifier{
		"an empty part":           {""},
		"an empty schema":         {"", "settings"},
		"an empty table":          {"ops", ""},
		"three parts":             {"db", "ops", "settings"},
		"a NUL":                   {"sett\x00ings"},
		"not UTF-8":               {"settings\xff"},
		"a byte too long":         {strings.Repeat("x", 64)},
		"long in its second part": {"ops", strings.Repeat("é", 32)},
	}
}

// replaceKey replaces @ by a key as a literal.
func replaceKey(sql, key string) string {
	return strings.ReplaceAll(sql, "@", "'"+key+"'")
}

const operator = "ops@example.com"

// row is a row of a settings table.
type row struct{ Value, By string }

// rows returns the rows of a settings table, by key.
func rows(t *testing.T, pool *pgxpool.Pool, table string) map[string]row {
	t.Helper()
	found, err := pool.Query(t.Context(), `select key, value::text, updated_by from `+table)
	require.NoError(t, err)
	all := map[string]row{}
	var key string
	var r row
	_, err = pgx.ForEachRow(found, []any{&key, &r.Value, &r.By}, func() error {
		all[key] = r
		return nil
	})
	require.NoError(t, err)
	return all
}

// as begins a transaction as a new role that has a grant on queue_config. The transaction
// is rolled back, and the role with it.
func as(t *testing.T, pool *pgxpool.Pool, grant string) pgx.Tx {
	t.Helper()
	tx := reapertest.Begin(t, pool)
	role := pgx.Identifier{pool.Config().ConnConfig.Database + "_reader"}.Sanitize()
	reapertest.Exec(t, tx, `create role `+role+`; grant `+grant+` on queue_config to `+role+`; set local role `+role)
	return tx
}

// operation is a change that an operator makes.
type operation struct{ verb, key, value string }

func (o operation) run(ctx context.Context, db gates.DB) (err error) {
	settings := gates.Table{}
	switch o.verb {
	case "open":
		_, err = settings.OpenWindow(ctx, db, operator, time.Hour)
	case "close":
		err = settings.CloseWindow(ctx, db, operator)
	case "set":
		err = settings.Set(ctx, db, operator, o.key, o.value)
	case "unset":
		err = settings.Unset(ctx, db, operator, o.key)
	}
	return err
}

// read reads all keys in a transaction that is rolled back.
func read(ctx context.Context, pool *pgxpool.Pool, source gates.Source) (gates.Values, error) {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	return source.Read(ctx, tx, gates.Keys())
}

// set fills queue_config.
func set(t *testing.T, pool *pgxpool.Pool, settings map[string]string) {
	t.Helper()
	for key, value := range settings {
		reapertest.Exec(t, pool, `insert into queue_config (key, value) values ($1, $2)`, key, value)
	}
}
