package library

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// How long a test waits for an event at most, and how often it looks.
const (
	Waiting = 60 * time.Second
	Tick    = 20 * time.Millisecond
)

// DB is a pool, a connection or a transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Exec runs a statement.
func Exec(t testing.TB, db DB, sql string, args ...any) {
	t.Helper()
	_, err := db.Exec(t.Context(), sql, args...)
	require.NoError(t, err)
}

// One reads a single value.
func One[T any](t testing.TB, db DB, sql string, args ...any) T {
	t.Helper()
	var value T
	require.NoError(t, db.QueryRow(t.Context(), sql, args...).Scan(&value))
	return value
}

// Eventually waits until a query returns true.
func Eventually(t testing.TB, db DB, sql string, args ...any) {
	t.Helper()
	require.Eventually(t, func() bool { return One[bool](t, db, sql, args...) }, Waiting, Tick, sql)
}

// environment names the database of a pool in the variables that node-postgres and pgx
// read.
func environment(pool *pgxpool.Pool) []string {
	config := pool.Config().ConnConfig
	return []string{
		"PGHOST=" + config.Host,
		"PGPORT=" + strconv.Itoa(int(config.Port)),
		"PGUSER=" + config.User,
		"PGPASSWORD=" + config.Password,
		"PGDATABASE=" + config.Database,
	}
}
