package reaper_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// togetherRounds is the number of random queues that drains meet over.
const togetherRounds = 60

// After a crash every replica drains at once, over whatever the queue holds. One
// job that two of them reap, that all pass by, or that was never theirs, is a
// call at night.
func TestDrainsTogetherDoWhatOneIsToDo(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	for round := range togetherRounds {
		random := rand.New(rand.NewPCG(5, uint64(round)))
		fillBacklog(t, pool, random)
		drains, batch := 1+random.IntN(3), 1+random.IntN(20)
		what := fmt.Sprintf("round %d: %d drains in batches of %d", round, drains, batch)

		for _, result := range drainTogether(t, pool, drains, batch) {
			requireTries(t, pool, result, drains, what)
		}

		require.Empty(t, unlike(t, pool), what)
		require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int - count(distinct job_id)::int from job_dead_letter`), what)
	}
}

// fillBacklog makes a queue of up to 300 jobs, and a copy of it.
func fillBacklog(t *testing.T, pool *pgxpool.Pool, random *rand.Rand) {
	t.Helper()
	reapertest.Exec(t, pool, `truncate job_queue, job_dead_letter; drop table if exists before`)
	pick := func(values ...string) string { return values[random.IntN(len(values))] }
	var rows []string
	for range random.IntN(300) {
		kind, other := "good", pick("ready", "succeeded")
		if random.IntN(5) == 0 {
			kind, other = "check", "leased" // which is all that the table allows it
		}
		rows = append(rows, fmt.Sprintf(`('%s', '%s', %d, %s)`,
			kind,
			pick("leased", "leased", "leased", "leased", other, other),
			random.IntN(6),
			pick(`null`, `'infinity'`, `now() + '1 hour'`, `'-infinity'`, `'4713-11-25 12:00:00+00 BC'`,
				`'2026-01-01 00:00:00+00'`, `'2026-01-01 00:00:00.000001+00'`,
				`now() - '1 minute'::interval`,
				`now() - '1 day'::interval * random()`, `now() - '1 day'::interval * random()`,
				`now() - '1 minute'::interval * random()`, `now() - '1 minute'::interval * random()`)))
	}
	if len(rows) > 0 {
		reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, lease_until) values `+strings.Join(rows, ","))
	}
	reapertest.Exec(t, pool, `create table before as table job_queue`)
}

func drainTogether(t testing.TB, pool *pgxpool.Pool, drains, batch int) []*reaper.DrainResult {
	t.Helper()
	results, errs := make([]*reaper.DrainResult, drains), make([]error, drains)
	var group sync.WaitGroup
	for i := range drains {
		r := reapertest.New(t, pool, reaper.Config{})
		group.Go(func() { results[i], errs[i] = r.Drain(t.Context(), reapertest.Actor, batch) })
	}
	group.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
	return results
}

// requireTries checks that a drain has tried each bad job once, or, where it was
// not alone, at most once: another one may have had it locked.
func requireTries(t *testing.T, pool *pgxpool.Pool, result *reaper.DrainResult, drains int, what string) {
	t.Helper()
	bad := reapertest.One[int](t, pool, `select count(*)::int from before
		where job_kind = 'check' and state = 'leased' and lease_until < now()`)
	require.LessOrEqual(t, result.FailedCount, bad, what)
	if drains == 1 {
		require.Equal(t, bad, result.FailedCount, what)
	}
}

// unlike lists the jobs that are not as reaping each stale lease once leaves them.
func unlike(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	return reapertest.One[[]string](t, pool, `
		select coalesce(array_agg(b::text || ' became ' || q::text), '{}')
		from job_queue q
		join before b using (job_id)
		where case
			when b.state = 'leased' and b.lease_until < now() and b.job_kind = 'good' then
				q.attempts <> b.attempts + 1 or q.lease_until is not null or q.state <>
					case when b.attempts + 1 >= b.max_attempts then 'dead_letter' else 'retry_waiting' end
			else q::text <> b::text
		end`)
}

// Two replicas drain after the same crash. Here the second one does all of its
// work while the first one commits its first batch.
func TestDrainsThatMeetDivideTheBacklog(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, reapertest.RejectingSchemas["check"].SQL)
	reapertest.Stale(t, pool, "good", 100, 0, 5)
	reapertest.Stale(t, pool, "dying", 30, 4, 5)
	reapertest.Stale(t, pool, "check", 20, 0, 5)
	reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day' where job_id in
		(select job_id from job_queue where job_kind = 'good' limit 10)`)
	second := reapertest.New(t, pool, reaper.Config{})
	var others *reaper.DrainResult
	meet := sync.OnceValue(func() (err error) {
		others, err = second.Drain(t.Context(), reapertest.Actor, 10)
		return err
	})
	first := reapertest.New(t, pool, reaper.Config{
		OnApply: func(context.Context, pgx.Tx, *reaper.ApplyResult) error { return meet() },
	})

	result, err := first.Drain(t.Context(), reapertest.Actor, 10)

	require.NoError(t, err)
	require.Equal(t, 10, result.ResetCount)
	require.Equal(t, 90, others.ResetCount)
	require.Equal(t, 30, others.DeadLetterCount)
	require.Equal(t, 20, result.FailedCount)
	require.Equal(t, 20, others.FailedCount)
	require.Equal(t, 30, reapertest.One[int](t, pool, `select count(distinct job_id)::int from job_dead_letter`))
	require.Equal(t, 100+5*30, reapertest.One[int](t, pool, `select sum(attempts)::int from job_queue`))
}
