package reaper_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// A trigger of the user's puts the old state back and lets the rest pass. A job
// that is leased without a lease would hang for good: nothing of it may stay.
func TestATriggerThatKeepsTheStateLeavesTheLease(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		attempts int
		cfg      reaper.Config
	}{
		"a reset":                {0, reaper.Config{}},
		"a reset before a hook":  {0, reaper.Config{OnApply: reapertest.NoHook}},
		"a move":                 {4, reaper.Config{}},
		"a move before a hook":   {4, reaper.Config{OnApply: reapertest.NoHook}},
		"a move by the function": {4, reaper.Config{DeadLetter: deadletter.Function{}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
			reapertest.Stale(t, pool, "good", 5, 0, 5)
			reapertest.Stale(t, pool, "kept", 2, test.attempts, 5)
			reapertest.Exec(t, pool, `create function keep() returns trigger language plpgsql as
				$fn$ begin if old.job_kind = 'kept' then new.state := old.state; end if; return new; end $fn$;
				create trigger keep before update on job_queue for each row execute function keep()`)
			before := reapertest.BadRows(t, pool, "kept")

			result := reapertest.Apply(t, reapertest.New(t, pool, test.cfg), 10)

			require.Equal(t, 5, result.ResetCount)
			require.Equal(t, 2, result.FailedCount)
			require.Equal(t, before, reapertest.BadRows(t, pool, "kept"))
			require.Zero(t, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
		})
	}
}

// Types of the caller's that embed the library's, and decide for themselves.
type (
	closedTable struct{ gates.Table }
	awayTable   struct{ deadletter.Table }
	ownPool     struct {
		*pgxpool.Pool
		begun *int
	}
)

func (closedTable) Read(context.Context, pgx.Tx, []string) (gates.Values, error) {
	return gates.Values{}, nil
}

func (awayTable) Move(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
	return nil, deadletter.ErrUnavailable
}

func (p ownPool) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	*p.begun++
	return p.Pool.BeginTx(ctx, options)
}

// Whoever embeds a source, a mover or a pool to change what it does must not be
// gone around, on the way on which all travels at once.
func TestWhatIsEmbeddedIsNotGoneAround(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 4, 5)

	result, err := reapertest.New(t, pool, reaper.Config{Gates: closedTable{}}).Apply(t.Context(), reapertest.Actor, 10)
	require.NoError(t, err)
	require.Equal(t, "queue.job_substrate.enabled=false", result.Reason)

	_, err = reapertest.New(t, pool, reaper.Config{DeadLetter: awayTable{}}).Apply(t.Context(), reapertest.Actor, 10)
	require.ErrorIs(t, err, deadletter.ErrUnavailable)
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))

	begun := 0
	require.Len(t, reapertest.Apply(t, reapertest.New(t, ownPool{pool, &begun}, reaper.Config{}), 10).Actions, 1)
	require.Equal(t, 1, begun)
}

// A plan may spell a key as its reader likes: it is the same job.
func TestApplyPlanKnowsAKeyInAnotherSpelling(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	plan := review(t, r, 10)
	plan.Jobs[0].JobID = strings.ToUpper(plan.Jobs[0].JobID)

	result, err := r.ApplyPlan(t.Context(), reapertest.Actor, plan)

	require.NoError(t, err)
	require.Len(t, result.Actions, 1)
	require.Empty(t, result.Skipped)
}
