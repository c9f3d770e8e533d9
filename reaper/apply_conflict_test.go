package reaper_test

import (
	"context"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// conflicting makes every apply meet a conflict, the first times times.
func conflicting(sqlState string, times int, calls *int) reaper.Config {
	return reaper.Config{OnApply: func(ctx context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
		*calls++
		if *calls > times {
			return nil
		}
		_, err := tx.Exec(ctx, `do $$ begin raise 'conflict' using errcode = '`+sqlState+`'; end $$`)
		return err
	}}
}

// A deadlock that the server resolved by ending the apply is over; the job's
// owner should not have to know.
func TestAConflictIsTriedAgain(t *testing.T) {
	t.Parallel()

	for _, sqlState := range []string{"40001", "40P01"} {
		pool := reapertest.OpenQueue(t)
		reapertest.Stale(t, pool, "kind", 3, 4, 5)
		calls := 0

		result := reapertest.Apply(t, reapertest.New(t, pool, conflicting(sqlState, 3, &calls)), 10)

		require.Equal(t, 3, result.DeadLetterCount)
		require.Equal(t, 4, calls)
		require.Equal(t, 3, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
	}
}

// Two services that conflict for good must not keep each other busy for good.
func TestAConflictIsTriedAgainABoundedNumberOfTimes(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	calls := 0

	_, err := reapertest.New(t, pool, conflicting("40001", 1000, &calls)).Apply(t.Context(), reapertest.Actor, 10)

	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "40001", pgErr.Code)
	require.Equal(t, 6, calls)
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
}

// What a caller's transaction has read before is void after a conflict, and only
// the caller can begin it again.
func TestAConflictInACallersTransactionIsReturned(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	calls := 0

	_, err := reapertest.New(t, reapertest.Begin(t, pool), conflicting("40001", 1, &calls)).Apply(t.Context(), reapertest.Actor, 10)

	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, 1, calls)
}

// A worker that updates several jobs in another order than the reaper's would
// deadlock with it if the reaper waited for rows.
func TestAWorkerInTheOppositeOrderDoesNotDeadlock(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 2, 0, 5)
	var older, newer string
	require.NoError(t, pool.QueryRow(t.Context(), `select (array_agg(job_id::text order by lease_until))[1],
		(array_agg(job_id::text order by lease_until))[2] from job_queue`).Scan(&older, &newer))
	worker := reapertest.Begin(t, pool)
	reapertest.Exec(t, worker, `update job_queue set payload = '{}' where job_id = $1::uuid`, newer)
	done := make(chan error, 1)
	r := reapertest.New(t, pool, reaper.Config{OnApply: func(ctx context.Context, _ pgx.Tx, _ *reaper.ApplyResult) error {
		go func() {
			_, err := worker.Exec(ctx, `update job_queue set payload = '{"late": true}' where job_id = $1::uuid`, older)
			done <- err
		}()
		reapertest.WaitForLock(t, pool, `update job_queue set payload = '{"late"%`)
		return nil
	}})

	require.Len(t, reapertest.Apply(t, r, 10).Actions, 1) // the other is the worker's

	require.NoError(t, <-done)
	require.NoError(t, worker.Commit(t.Context()))
	require.Len(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).Actions, 1)
}

// One bad row in a large batch must cost a search, not a statement a row.
func TestABadRowInALargeBatchCostsAFewDozenRoundTrips(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ attempts, most int }{
		"at its reset": {0, 48},
		"at its move":  {4, 62},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
			traced, recorder := reapertest.Recording(t, pool)
			exchanges := func(place string) int {
				reapertest.Exec(t, pool, `truncate job_queue, job_dead_letter`)
				reapertest.Stale(t, pool, "good", 10000, test.attempts, 5)
				reapertest.Exec(t, pool, `update job_queue set job_kind = 'check' where lease_until = (select `+place+`(lease_until) from job_queue)`)
				recorder.Exchanges = 0
				result := reapertest.Apply(t, reapertest.New(t, traced, reaper.Config{}), 10000)
				require.Equal(t, 1, result.FailedCount)
				require.Len(t, result.Actions, 9999)
				return recorder.Exchanges
			}
			first, last := exchanges("min"), exchanges("max")
			t.Log("first:", first, "last:", last)
			require.LessOrEqual(t, max(first, last), 5+test.most)
		})
	}
}

// More savepoints than a backend keeps in memory (64) must not be a cliff: the
// time a row takes is compared at ten bad rows and at many.
func BenchmarkBadRows(b *testing.B) {
	for name, bad := range map[string]int{"1 of 1000": 1, "10 of 1000": 10, "100 of 1000": 100, "500 of 1000": 500} {
		b.Run(name, func(b *testing.B) { benchBadRows(b, reapertest.OpenQueue(b), bad) })
	}
}

func benchBadRows(b *testing.B, pool *pgxpool.Pool, bad int) {
	b.Helper()
	reapertest.Exec(b, pool, reapertest.RejectingSchemas["check"].SQL)
	r := reapertest.New(b, pool, reaper.Config{})
	for b.Loop() {
		b.StopTimer()
		reapertest.Exec(b, pool, `truncate job_queue, job_dead_letter`)
		reapertest.Stale(b, pool, "good", 1000, 0, 5)
		reapertest.Exec(b, pool, `update job_queue set job_kind = 'check' where job_id in
			(select job_id from job_queue order by md5(job_id::text) limit $1)`, bad)
		b.StartTimer()
		require.Equal(b, bad, reapertest.Apply(b, r, 1000).FailedCount)
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*bad), "us/bad")
}
