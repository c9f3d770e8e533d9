package stmt_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// fewPages is what a statement may touch that does not walk the entries of jobs
// that have left the index of leases. These are in it still while a transaction is
// open that began before, a report say, and each costs a page of the table.
const fewPages = 100

// scattered inserts jobs whose leases ended long ago, in no order.
func scattered(t *testing.T, db reapertest.Execer, jobs int) {
	t.Helper()
	reapertest.Exec(t, db, `insert into job_queue (job_kind, state, lease_until)
		select 'old', 'leased', now() - interval '1 day' - make_interval(secs => 1e6 * random())
		from generate_series(1, $1::int)`, jobs)
}

// report is a transaction that sees the tables as they are now until the test ends.
func report(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	reapertest.Exec(t, conn, `begin isolation level repeatable read`)
	reapertest.Exec(t, conn, `select from job_queue limit 1`)
}

// pagesOf returns how many pages the dearest look or claim of a log touches, of
// those that begin at the oldest lease and of those that begin at a place.
func pagesOf(t *testing.T, pool *pgxpool.Pool, log []reapertest.Sent) (whole, rest map[string]int) {
	t.Helper()
	whole, rest = map[string]int{}, map[string]int{}
	replay(t, pool, `select`, log, func(db reapertest.Execer, s reapertest.Sent) {
		pages := whole
		switch {
		case s.Name() != "reaper.poll" && s.Name() != "reaper.claim":
			return
		case s.Cursor().Valid:
			pages = rest
		}
		pages[s.Name()] = max(pages[s.Name()], explain(t, db, s).pages())
	})
	return whole, rest
}

// After a day's work, while one old transaction is open, the head of the index is
// dead, and every wake-up that walked it would keep a processor busy.
func TestALoopDoesNotWalkWhatHasLeftTheIndex(t *testing.T) {
	t.Parallel()
	const left = 50_000
	pool := reapertest.OpenQueue(t)
	scattered(t, pool, left)
	report(t, pool)
	reapertest.Exec(t, pool, `update job_queue set state = 'succeeded', lease_until = null`)
	reapertest.Soon(t, pool)
	traced, recorder := reapertest.Recording(t, pool)
	stop := reapertest.Run(t, reapertest.New(t, traced, reaper.Config{}), reaper.RunConfig{
		Interval: time.Hour, MinInterval: time.Millisecond, Settle: 1, // it looks at everything at its start alone
	})
	require.Eventually(t, func() bool {
		claims := recorder.Named("reaper.claim")
		return len(claims) > 0 && claims[len(claims)-1].Cursor().Valid
	}, reapertest.Waiting, reapertest.Tick)
	stop()

	whole, rest := pagesOf(t, pool, recorder.Statements())

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
	pool := reapertest.OpenQueue(t)
	scattered(t, pool, jobs)
	report(t, pool)
	traced, recorder := reapertest.Recording(t, pool)
	_, err := reapertest.New(t, traced, reaper.Config{}).Drain(t.Context(), reapertest.Actor, jobs/10)
	require.NoError(t, err)
	log := recorder.Statements()
	begins := func(s reapertest.Sent) bool { return strings.HasPrefix(s.SQL, "begin") }
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
