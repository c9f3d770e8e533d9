package reaper_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// fewPages is what a statement may touch that does not walk the entries of jobs
// that have left the index of leases. These are in it still while a transaction is
// open that began before, a report say, and each costs a page of the table.
const fewPages = 100

// scattered inserts jobs whose leases ended long ago, in no order.
func scattered(t *testing.T, db execer, jobs int) {
	t.Helper()
	exec(t, db, `insert into job_queue (job_kind, state, lease_until)
		select 'old', 'leased', now() - interval '1 day' - make_interval(secs => 1e6 * random())
		from generate_series(1, $1::int)`, jobs)
}

// report is a transaction that sees the tables as they are now until the test ends.
func report(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	exec(t, conn, `begin isolation level repeatable read`)
	exec(t, conn, `select from job_queue limit 1`)
}

// place is from where a look or a claim begins.
func (s sent) place() pgtype.Timestamptz {
	at := map[string]int{"reaper.poll": 1, "reaper.claim": 2}[s.name()]
	place, _ := s.args[at].(pgtype.Timestamptz)
	return place
}

// pagesOf returns how many pages the dearest look or claim of a log touches, of
// those that begin at the oldest lease and of those that begin at a place.
func pagesOf(t *testing.T, pool *pgxpool.Pool, log []sent) (whole, rest map[string]int) {
	t.Helper()
	whole, rest = map[string]int{}, map[string]int{}
	replay(t, pool, `select`, log, func(db execer, s sent) {
		pages := whole
		switch {
		case s.name() != "reaper.poll" && s.name() != "reaper.claim":
			return
		case s.place().Valid:
			pages = rest
		}
		pages[s.name()] = max(pages[s.name()], explain(t, db, s).pages())
	})
	return whole, rest
}

// After a day's work, while one old transaction is open, the head of the index is
// dead, and every wake-up that walked it would keep a processor busy.
func TestALoopDoesNotWalkWhatHasLeftTheIndex(t *testing.T) {
	t.Parallel()
	const left = 50_000
	pool := openQueue(t)
	scattered(t, pool, left)
	report(t, pool)
	exec(t, pool, `update job_queue set state = 'succeeded', lease_until = null`)
	soon(t, pool)
	traced, recorder := recording(t, pool)
	stop := run(t, newReaper(t, traced, reaper.Config{}), reaper.RunConfig{
		Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1, // it looks at everything at its start alone
	})
	require.Eventually(t, func() bool {
		claims := recorder.named("reaper.claim")
		return len(claims) > 0 && claims[len(claims)-1].place().Valid
	}, waiting, tick)
	stop()

	whole, rest := pagesOf(t, pool, recorder.statements())

	require.Greater(t, whole["reaper.poll"], left/2)
	require.Greater(t, whole["reaper.claim"], left/2)
	require.Less(t, rest["reaper.poll"], fewPages)
	require.Less(t, rest["reaper.claim"], fewPages)
	t.Log("from the oldest lease:", whole, "from the mark on:", rest)
}

// The last batch of a large backlog must not walk all that the others have reaped.
func TestADrainDoesNotWalkWhatItHasReaped(t *testing.T) {
	t.Parallel()
	const jobs = 5000
	pool := openQueue(t)
	scattered(t, pool, jobs)
	report(t, pool)
	traced, recorder := recording(t, pool)
	_, err := newReaper(t, traced, reaper.Config{}).Drain(t.Context(), actor, jobs/10)
	require.NoError(t, err)
	log := recorder.statements()
	begins := func(s sent) bool { return strings.HasPrefix(s.sql, "begin") }
	second := 1 + slices.IndexFunc(log[1:], begins)
	last := len(log) - 1
	for !begins(log[last]) {
		last--
	}

	whole, _ := pagesOf(t, pool, log[:second])
	_, rest := pagesOf(t, pool, log[last:])

	require.Greater(t, whole["reaper.claim"], jobs/2)
	require.Less(t, rest["reaper.claim"], fewPages)
	t.Log("from the oldest lease:", whole, "from the place of the last batch:", rest)
}
