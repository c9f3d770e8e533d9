package reaper_test

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A connection breaks in the middle of an apply, and the caller calls again, as
// callers do. Were the outcome misjudged, a job would lose two tries, or a caller
// who was told that nothing had changed would act on that.
func TestCallingAgainAfterAnUnknownOutcomeIsSafe(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		hook    func(context.Context, pgx.Tx, *reaper.ApplyResult) error
		at      string
		loss    reapertest.Loss
		unknown bool
		done    bool
	}{
		"the commit never reached the server":                 {hook: reapertest.NoHook, at: "Qcommit\x00", loss: reapertest.LoseMessage, unknown: true},
		"the answer to the commit was lost":                   {hook: reapertest.NoHook, at: "Qcommit\x00", loss: reapertest.LoseAnswer, unknown: true, done: true},
		"a pooler answers the commit":                         {hook: reapertest.NoHook, at: "Qcommit\x00", loss: reapertest.ForgeAnswer, unknown: true, done: true},
		"the answer to the moves was lost":                    {hook: reapertest.NoHook, at: "-- reaper.close", loss: reapertest.LoseAnswer},
		"the writes never reached the server":                 {at: "-- reaper.reset", loss: reapertest.LoseMessage, unknown: true},
		"a commit behind the writes never reached the server": {at: "\x00commit\x00", loss: reapertest.LoseMessage, unknown: true},
		"the answer to the writes and their commit was lost":  {at: "-- reaper.reset", loss: reapertest.LoseAnswer, unknown: true, done: true},
		"the answer to a commit behind the writes was lost":   {at: "\x00commit\x00", loss: reapertest.LoseAnswer, unknown: true, done: true},
		"a pooler answers the writes with the commit":         {at: "\x00commit\x00", loss: reapertest.ForgeAnswer, unknown: true, done: true},
		"the claim never reached the server":                  {at: "-- reaper.claim", loss: reapertest.LoseMessage},
		"the answer to the claim was lost":                    {at: "-- reaper.claim", loss: reapertest.LoseAnswer},
		"a pooler answers the claim":                          {at: "-- reaper.claim", loss: reapertest.ForgeAnswer},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			admin := reapertest.OpenQueue(t)
			reapertest.Refill(t, admin)
			var lost atomic.Bool
			p := reapertest.StartProxy(t, admin.Config(), func(message []byte) reapertest.Loss {
				if bytes.Contains(message, []byte(test.at)) && lost.CompareAndSwap(false, true) {
					return test.loss
				}
				return reapertest.Keep
			})
			pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
				p.Reroute(c)
				c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec // every message holds its statement
			})
			r := reapertest.New(t, pool, reaper.Config{OnApply: test.hook})
			before := content(t, admin)

			result, err := r.Apply(t.Context(), reapertest.Actor, 10)

			require.Error(t, err)
			require.True(t, lost.Load(), err)
			require.Nil(t, result)
			require.Equal(t, test.unknown, reapertest.IsUnknown(err), err)
			reapertest.WaitForNoTransaction(t, admin)
			require.Equal(t, !test.done, before == content(t, admin))

			again := reapertest.Apply(t, r, 10)

			if test.done {
				require.Empty(t, again.Actions)
			} else {
				require.Len(t, again.Actions, 5)
			}
			requireReapedOnce(t, admin)
		})
	}
}

// content is what the tables hold, whatever was tried and rolled back.
func content(t *testing.T, db reapertest.Execer) string {
	t.Helper()
	return reapertest.One[string](t, db, `select concat_ws('|',
		(select string_agg(q::text, ',' order by q.job_id) from job_queue q),
		(select string_agg(d::text, ',' order by d.job_id) from job_dead_letter d))`)
}

// requireReapedOnce is about the jobs of refill.
func requireReapedOnce(t *testing.T, db reapertest.Execer) {
	t.Helper()
	require.Equal(t, map[string]int{"retry_waiting": 3, "dead_letter": 2}, reapertest.States(t, db))
	require.Zero(t, reapertest.One[int](t, db, `select count(*)::int from job_queue
		where attempts <> case job_kind when 'retryable' then 1 else 5 end`))
	require.Equal(t, 2, reapertest.One[int](t, db, `select count(*)::int from job_dead_letter where attempts = 5`))
	require.Equal(t, 2, reapertest.One[int](t, db, `select count(distinct job_id)::int from job_dead_letter`))
}
