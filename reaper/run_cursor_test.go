package reaper_test

import (
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// lastLook returns from where the loop has looked last: a time, or the oldest
// lease, which is not valid.
func lastLook(t *testing.T, recorder *reapertest.Recorder) pgtype.Timestamptz {
	t.Helper()
	looks := recorder.Named("reaper.poll")
	require.NotEmpty(t, looks)
	from, ok := looks[len(looks)-1].Args[1].(pgtype.Timestamptz)
	require.True(t, ok)
	return from
}

// A loop looks only behind the mark up to which it has seen everything. A job
// below it, which nobody would look at again, is as lost as one without a reaper.
func TestAFullLookFindsWhatIsBelowTheMark(t *testing.T) {
	t.Parallel()

	const old = `insert into job_queue (job_kind, state, lease_until) values ('below', 'leased', now() - interval '1 hour')`
	tests := map[string]struct {
		before, meanwhile, then string
		failed                  int // at the first pass
	}{
		"locked when it was passed": {
			before:    old,
			meanwhile: `select from job_queue where job_kind = 'below' for update`,
		},
		"committed late": {
			meanwhile: old,
		},
		"moved into the past by hand": {
			before: `insert into job_queue (job_kind, state, lease_until) values ('below', 'leased', now() + interval '1 hour')`,
			then:   `update job_queue set lease_until = now() - interval '1 day' where job_kind = 'below'`,
		},
		"rejected before": {
			before: old + `; alter table job_queue add constraint refused check (job_kind <> 'below' or state = 'leased')`,
			then:   `alter table job_queue drop constraint refused`,
			failed: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Soon(t, pool)
			reapertest.Exec(t, pool, test.before)
			worker := reapertest.Begin(t, pool)
			reapertest.Exec(t, worker, test.meanwhile)
			traced, recorder := reapertest.Recording(t, pool)
			loop := reapertest.Hold(t, reapertest.New(t, traced, reaper.Config{}), reaper.RunConfig{
				Interval: time.Second, MinInterval: time.Millisecond, Settle: 1,
			})
			require.Equal(t, test.failed, loop.Pass(t).Result.FailedCount)
			loop.Until(t, func() bool { return lastLook(t, recorder).Valid })
			mark := lastLook(t, recorder).Time
			require.Zero(t, below(t, pool))

			require.NoError(t, worker.Commit(t.Context()))
			reapertest.Exec(t, pool, test.then)
			require.True(t, reapertest.One[time.Time](t, pool, `select lease_until from job_queue where job_kind = 'below'`).Before(mark))
			loop.Until(t, func() bool { return !lastLook(t, recorder).Valid })

			require.Equal(t, 1, below(t, pool))
		})
	}
}

// below counts the jobs below the mark that were given back.
func below(t *testing.T, db reapertest.Execer) int {
	t.Helper()
	return reapertest.One[int](t, db, `select count(*)::int from job_queue where job_kind = 'below' and state = 'retry_waiting'`)
}
