package reaper_test

import (
	"math"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A policy of the user's may return anything. A delay out of bounds would bring the job
// back at once, or give a time that the column does not take.
func TestADelayIsHeldInItsBounds(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	returned := []int64{
		math.MinInt64, -1, 0, 1, 10240, backoff.MaxSec - 1, backoff.MaxSec, backoff.MaxSec + 1, math.MaxInt64,
	}
	held := []int64{0, 0, 0, 1, 10240, backoff.MaxSec - 1, backoff.MaxSec, backoff.MaxSec, backoff.MaxSec}
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, max_attempts, lease_until)
		select 'kind', 'leased', i, 100, now() - interval '1 hour' + make_interval(secs => i) from generate_series(0, 8) i`)
	policy := backoff.PolicyFunc(func(attempts int, _ int64) int64 { return returned[attempts-1] })

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{Backoff: policy}), 100)

	require.Len(t, result.Actions, len(held))
	for i, action := range result.Actions {
		require.Equal(t, held[i], action.BackoffSec, "%d seconds", returned[i])
	}
}

// The reaper reads the gates together with the claim. Settings of which it cannot tell
// alone what they mean must refuse as the source itself does.
func TestUnclearSettingsAreAsTheSourceReadsThem(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		source  gates.Source
		before  string // for the session
		unclear string
		key     string // of the value that is an error
		reason  string
	}{
		"a key with two rows": {
			source: gates.Table{},
			unclear: `alter table queue_config drop constraint queue_config_pkey;
				insert into queue_config (key, value) values ('queue.lease.reaper_enabled', 'true')`,
			key: gates.ReaperEnabled,
		},
		"a gate that is closed for later sessions": {
			source: gates.CurrentSetting{}, before: "on", unclear: `{alter} = 'off'`, reason: gates.SubstrateEnabled + "=false",
		},
		"a gate that is open for later sessions": {
			source: gates.CurrentSetting{}, before: "off", unclear: `{alter} = 'on'`, reason: gates.SubstrateEnabled + "=false",
		},
		"a gate that is open in two spellings": {
			source: gates.CurrentSetting{}, before: "on", unclear: `{alter} = 'true'`, reason: gates.ReaperEnabled + "=false",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "kind", 1, 0, 5)
			alter := `alter database ` + pgx.Identifier{pool.Config().ConnConfig.Database}.Sanitize() + ` set ` + gates.SubstrateEnabled
			if test.before != "" {
				reapertest.Exec(t, pool, alter+` = '`+test.before+`'`)
			}
			one := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.MaxConns = 1 })
			r := reapertest.New(t, one, reaper.Config{Gates: test.source})
			reapertest.Exec(t, one, `select`)
			reapertest.Exec(t, pool, strings.Replace(test.unclear, "{alter}", alter, 1))

			for range 2 { // after a refusal the gates are read before the claim
				result, err := r.Apply(t.Context(), reapertest.Actor, 10)
				if test.key != "" {
					var bad *gates.ValueError
					require.ErrorAs(t, err, &bad)
					require.Equal(t, test.key, bad.Key)
					continue
				}
				require.NoError(t, err)
				require.Equal(t, test.reason, result.Reason)
			}
			require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
		})
	}
}
