package reaper_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// An operator decides on the count and the list, so the count must not stop at
// the limit and the list must begin with the oldest lease.
func TestDryRunCountsAllAndListsTheOldest(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t) // no gate is open, and none is asked
	reapertest.Stale(t, pool, "kind", 20, 0, 5)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values
		('live', 'leased', now() + interval '1 hour'), ('not leased', 'ready', now() - interval '1 hour')`)

	result, err := reapertest.New(t, pool, reaper.Config{}).DryRun(t.Context(), 3)

	require.NoError(t, err)
	require.Equal(t, 20, result.StaleLeaseCount)
	require.Equal(t, 3, result.Limit)
	require.False(t, result.Mutation)
	require.Len(t, result.Jobs, 3)
	for i, job := range result.Jobs {
		require.EqualValues(t, 20-i, job.OverdueSeconds)
		require.Equal(t, result.EvaluatedAt.Add(-job.LeaseUntil.Sub(result.EvaluatedAt).Abs()), job.LeaseUntil)
	}
}

// A tool that loops over null instead of a list breaks on the good day.
func TestDryRunOfAnEmptyQueueListsNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	result, err := reapertest.New(t, pool, reaper.Config{}).DryRun(t.Context(), 3)

	require.NoError(t, err)
	require.Contains(t, reapertest.JSON(t, result), `"jobs":[]`)
	requireReadsBack(t, result)
}

// A dry run is what people try in production first: it must do nothing, under a
// role that may do nothing, on a database where nothing may be done.
func TestDryRunLeavesNoTrace(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)
	reapertest.Exec(t, pool, `create sequence watched; grant select on job_queue to public`)
	dry := pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	role := reapertest.One[string](t, pool, `select 'dry_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	reapertest.Exec(t, dry, `set session characteristics as transaction read only`)
	before := reapertest.Fingerprint(t, pool)

	asRole := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
	for _, db := range []*pgxpool.Pool{dry, asRole} {
		result, err := reapertest.New(t, db, reaper.Config{}).DryRun(t.Context(), 10)
		require.NoError(t, err)
		require.Len(t, result.Jobs, 5)
	}

	require.Equal(t, before, reapertest.Fingerprint(t, pool))
	require.False(t, reapertest.One[bool](t, pool, `select is_called from watched`))
}

// A dry run that waits for workers would hang exactly when something is wrong.
func TestDryRunWaitsForNobody(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // it only holds locks
	reapertest.Exec(t, tx, `select from job_queue for update`)
	reapertest.Exec(t, tx, `lock table job_queue in exclusive mode`)
	impatient := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["lock_timeout"] = "1" })

	result, err := reapertest.New(t, impatient, reaper.Config{}).DryRun(t.Context(), 10)

	require.NoError(t, err)
	require.Len(t, result.Jobs, 5)
}

// The columns of the user's own may be secret: SELECT on the nine is enough.
func TestDryRunNeedsNineColumns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	role := reapertest.One[string](t, pool, `select 'nine_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	reapertest.Exec(t, pool, `grant select (job_id, job_kind, state, attempts, max_attempts, scheduled_at, lease_owner,
		lease_until, last_error) on job_queue to `+role)
	asRole := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })

	_, err := reapertest.New(t, asRole, reaper.Config{}).DryRun(t.Context(), 10)
	require.NoError(t, err)

	reapertest.Exec(t, pool, `revoke select (lease_owner) on job_queue from `+role)
	_, err = reapertest.New(t, asRole, reaper.Config{}).DryRun(t.Context(), 10)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "42501", pgErr.Code)
}

// A dry run inside a caller's transaction is read-only for itself, and must not
// leave the caller's transaction so.
func TestDryRunInACallersTransactionLeavesItWritable(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer tx.Rollback(t.Context()) //nolint:errcheck // committed below

	dryRun, err := reapertest.New(t, tx, reaper.Config{}).DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, dryRun.Jobs, 1)

	require.Len(t, reapertest.Apply(t, reapertest.New(t, tx, reaper.Config{}), 10).Actions, 1)
	require.NoError(t, tx.Commit(t.Context()))
	require.Equal(t, map[string]int{"retry_waiting": 1}, reapertest.States(t, pool))
}

// In a transaction of its own, a dry run cannot write even where its SQL would:
// a queue that is a view over a function with side effects shows it.
func TestDryRunCannotWrite(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `alter table job_queue rename to jobs;
		create table trace (at timestamptz);
		create function note() returns boolean language sql volatile as
			'insert into trace values (now()) returning true';
		create view job_queue as select * from jobs where note()`)
	stale := `insert into jobs (job_kind, state, lease_until) values ('k', 'leased', now() - interval '1s')`
	reapertest.Exec(t, pool, stale)

	for name, db := range map[string]reaper.DB{"a pool": pool, "a transaction": reapertest.Begin(t, pool)} {
		_, err := reapertest.New(t, db, reaper.Config{}).DryRun(t.Context(), 10)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr, name)
		require.Equal(t, "25006", pgErr.Code, name) // read_only_sql_transaction
	}
}

// A dashboard that asks every few seconds, while a million leases are stale, must
// not count them all each time, nor take the number it stopped at for the truth.
func TestDryRunCountsUpToANumber(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)

	tests := map[string]struct {
		upTo   int
		count  int
		capped bool
	}{
		"fewer than there are":        {upTo: 4, count: 4, capped: true},
		"as many as there are":        {upTo: 5, count: 5},
		"more than there are":         {upTo: 6, count: 5},
		"all of them":                 {upTo: 0, count: 5},
		"up to the largest number":    {upTo: math.MaxInt, count: 5},
		"fewer than are to be listed": {upTo: 1, count: 1, capped: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := reapertest.New(t, pool, reaper.Config{CountUpTo: test.upTo}).DryRun(t.Context(), 3)
			require.NoError(t, err)
			require.Equal(t, test.count, result.StaleLeaseCount)
			require.Equal(t, test.capped, result.StaleLeaseCountCapped)
			require.Len(t, result.Jobs, 3)

			document := reapertest.JSON(t, result)
			require.Equal(t, test.capped, strings.Contains(document, `"stale_lease_count_capped":true`), document)
			require.Equal(t, test.capped, strings.Contains(document, "capped"), document)
			var back reaper.DryRunResult
			require.NoError(t, json.Unmarshal([]byte(document), &back))
			require.Equal(t, *result, back)
		})
	}
}
