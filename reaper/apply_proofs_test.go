package reaper_test

import (
	"encoding/json"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// An operator sees a refusal that does not say which gate is closed, or a tool
// that matches its text stops to.
func TestApplyRefusesByteForByte(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ actor, settings, want string }{
		"the actor is empty": {
			actor: "", want: `{"reason":"actor_required","refused":true}`,
		},
		"the actor is white space": {
			actor: " \t\n\u00a0", want: `{"reason":"actor_required","refused":true}`,
		},
		"nothing is set": {
			actor: reapertest.Actor, want: `{"reason":"queue.job_substrate.enabled=false","refused":true}`,
		},
		"the reaper is not enabled": {
			actor:    reapertest.Actor,
			settings: `('queue.job_substrate.enabled', 'true'), ('queue.lease.reaper_dry_run_only', 'false')`,
			want:     `{"reason":"queue.lease.reaper_enabled=false","refused":true}`,
		},
		"only dry runs are allowed": {
			actor:    reapertest.Actor,
			settings: `('queue.job_substrate.enabled', ' ON '), ('queue.lease.reaper_enabled', '1'), ('queue.lease.reaper_dry_run_only', 'y')`,
			want:     `{"reason":"queue.lease.reaper_dry_run_only=true","refused":true}`,
		},
		"dry-run-only is not set": {
			actor:    reapertest.Actor,
			settings: `('queue.job_substrate.enabled', 't'), ('queue.lease.reaper_enabled', 'yes')`,
			want:     `{"reason":"queue.lease.reaper_dry_run_only=true","refused":true}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Stale(t, pool, "kind", 3, 0, 5)
			if test.settings != "" {
				reapertest.Exec(t, pool, `insert into queue_config (key, value) values `+test.settings)
			}
			rows := func() string {
				return reapertest.One[string](t, pool, `select string_agg(q::text || q.xmin, ',' order by job_id) from job_queue q`)
			}
			before := rows()

			result, err := reapertest.New(t, pool, reaper.Config{}).Apply(t.Context(), test.actor, 10)

			require.NoError(t, err)
			require.Equal(t, test.want, reapertest.JSON(t, result))
			require.Equal(t, before, rows())
			reapertest.Exec(t, pool, `select from job_queue for update nowait`) // no lock was left behind
		})
	}
}

// The two jobs of the design: one has tries left, the other has used them up.
func TestApplyGivesEachJobItsDue(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until) values
		('retryable', 'leased', 0, 5, 'worker-1', now() - interval '90 seconds'),
		('dlq_bound', 'leased', 4, 5, 'worker-2', now() - interval '60 seconds')`)

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10)

	require.Equal(t, 1, result.ResetCount)
	require.Equal(t, 1, result.DeadLetterCount)
	require.Len(t, result.Actions, 2)
	reset, move := result.Actions[0], result.Actions[1]
	require.Equal(t, reaper.ActionReset, reset.Action)
	require.EqualValues(t, 10, reset.BackoffSec)
	require.Equal(t, reaper.ActionMoved, move.Action)
	require.Equal(t, 5, move.Attempts)

	var document struct {
		DeadLetterID string `json:"dead_letter_id"`
		State        string `json:"state"`
		Refused      bool   `json:"refused"`
		Attempts     int    `json:"attempts"`
	}
	require.NoError(t, json.Unmarshal(move.DeadLetter.Document, &document))
	require.Equal(t, "dead_letter", document.State)
	require.Equal(t, 5, document.Attempts)
	require.False(t, document.Refused)
	require.Equal(t, move.JobID, reapertest.One[string](t, pool,
		`select job_id::text from job_dead_letter where dead_letter_id = $1`, document.DeadLetterID))
}
