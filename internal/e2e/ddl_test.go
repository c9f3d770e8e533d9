package e2e_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A migration runs while the service does. The statements that its connections
// have cached must go on to work, or the reaper is down until someone restarts
// it; and a dead letter that lacks the new column cannot be redriven.
func TestAQueueIsAlteredUnderALivePool(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		migration []string
		tenant    bool // whether the queue has the column from then on
	}{
		"a column is added": {
			[]string{`alter table job_queue add column tenant text not null default 'acme'`}, true,
		},
		"columns are added that are written anew": {
			[]string{`alter table job_queue add column at timestamptz default clock_timestamp(), add column tenant text default 'acme'`}, true,
		},
		"a column is generated": {
			[]string{`alter table job_queue add column tenant text generated always as ('ac' || 'me') stored`}, true,
		},
		"a column is dropped": {
			[]string{`alter table job_queue drop column payload`}, false,
		},
		"an index is added": {
			[]string{`create index concurrently on job_queue (job_kind, lease_until)`}, false,
		},
		"another index serves the claim": {
			[]string{
				`create index concurrently on job_queue (lease_until, job_id) where state = 'leased'`,
				`drop index concurrently job_queue_lease_until_idx`,
			}, false,
		},
		"the table is written anew": {
			[]string{`cluster job_queue using job_queue_pkey`}, false,
		},
	}
	modes := map[string]pgx.QueryExecMode{
		"cached statements":   pgx.QueryExecModeCacheStatement,
		"cached descriptions": pgx.QueryExecModeCacheDescribe,
	}
	for name, test := range tests {
		for cached, mode := range modes {
			for with, mover := range reapertest.Movers {
				t.Run(name+", "+cached+", "+with, func(t *testing.T) {
					t.Parallel()
					admin := reapertest.WithOracle(t, reapertest.OpenQueue(t))
					pool := pgtest.Connect(t, admin, func(c *pgxpool.Config) {
						c.MaxConns = 1
						c.ConnConfig.DefaultQueryExecMode = mode
					})
					for range 2 { // the second time everything comes from the cache
						reapAndVerify(t, admin, pool, mover)
					}

					for _, statement := range test.migration {
						reapertest.Exec(t, admin, statement)
					}

					reapAndVerify(t, admin, pool, mover)
					reapAndVerify(t, admin, pool, mover)
					require.Equal(t, test.tenant, reapertest.One[bool](t, admin, `select bool_and(job ? 'tenant') from job_dead_letter`))
					if test.tenant {
						require.True(t, reapertest.One[bool](t, admin, `select bool_and(job ->> 'tenant' = 'acme') from job_dead_letter`))
					}
				})
			}
		}
	}
}

// reapAndVerify calls everything but Run once.
func reapAndVerify(t *testing.T, admin, pool *pgxpool.Pool, mover deadletter.Mover) {
	t.Helper()
	reapertest.Exec(t, admin, `delete from job_queue; delete from job_dead_letter`)
	reapertest.Stale(t, admin, "retryable", 4, 0, 5)
	reapertest.Stale(t, admin, "exhausted", 4, 4, 5)
	cfg := reaper.Config{DeadLetter: mover}
	r := reapertest.New(t, pool, cfg)

	require.Empty(t, reapertest.Verify(t, pool, cfg).Problems)
	dryRun, err := r.DryRun(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, dryRun.Jobs, 8)
	require.Len(t, reapertest.Apply(t, r, 4).Actions, 4)
	drained, err := r.Drain(t.Context(), reapertest.Actor, 3)
	require.NoError(t, err)
	require.Equal(t, 4, drained.ResetCount+drained.DeadLetterCount)
	require.Equal(t, map[string]int{"retry_waiting": 4, "dead_letter": 4}, reapertest.States(t, admin))
}
