package mapping_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/mapping"
)

// queue is one that has all its columns.
func queue() mapping.Queue {
	return mapping.Queue{
		Table: pgx.Identifier{"jobs"}, JobID: "id", JobKind: "kind", State: "state", ScheduledAt: "run_at",
		Attempts: "attempts", MaxAttempts: "maximum", LeaseOwner: "owner", LeaseUntil: "lease", LastError: "error",
		Leased: "leased", RetryWaiting: "waiting", DeadLetter: "dead",
	}
}

// in puts the queue's names into SQL.
func in(t *testing.T, q mapping.Queue, sql string) string {
	t.Helper()
	names := q.Names()
	require.Empty(t, names.Faults)
	return strings.NewReplacer(names.Pairs...).Replace(sql)
}

// one is the single value of a statement.
func one[T any](t *testing.T, pool *pgxpool.Pool, sql string, args ...any) (value T) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), sql, args...).Scan(&value), sql)
	return value
}
