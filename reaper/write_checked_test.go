package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// The commit travels with the dead letters. Made after a job that was not stored, or
// stored under another id, it would lose the job.
func TestACommitLosesNoJobWhoseLetterIsNotStored(t *testing.T) {
	t.Parallel()

	letters := func(body string) string {
		return `create function odd() returns trigger language plpgsql as $fn$ begin ` + body + ` return new; end $fn$;
			create trigger odd before insert on job_dead_letter for each row execute function odd()`
	}
	tests := map[string]struct {
		sql    string
		failed int
	}{
		"a trigger ignores one":            {letters(`if new.job_kind = 'odd' then return null; end if;`), 1},
		"a trigger ignores all":            {letters(`return null;`), 4},
		"a trigger takes one for another":  {letters(`if new.job_kind = 'odd' then new.job_id := gen_random_uuid(); end if;`), 1},
		"a trigger takes all for another":  {letters(`new.job_id := gen_random_uuid();`), 4},
		"the letter's id has another type": {`alter table job_dead_letter alter job_id type text`, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "even", 3, 4, 5)
			reapertest.Stale(t, pool, "odd", 1, 4, 5)
			reapertest.Stale(t, pool, "retryable", 2, 0, 5)
			reapertest.Exec(t, pool, test.sql)

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)

			require.Equal(t, 2, result.ResetCount)
			require.Equal(t, test.failed, result.FailedCount)
			require.Equal(t, 4-test.failed, result.DeadLetterCount)
			require.Equal(t, 4-test.failed, reapertest.One[int](t, pool, `select count(*) from job_dead_letter d
				join job_queue q on q.job_id::text = d.job_id::text where q.state = 'dead_letter'`))
			require.Equal(t, 4-test.failed, reapertest.One[int](t, pool, `select count(*) from job_dead_letter`))
		})
	}
}
