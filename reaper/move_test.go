package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// A mover that refuses a job, or fails for it, in every way it can.
func TestAMoverThatTurnsAJobAwayLeavesItAsItWas(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mover    deadletter.Mover
		sql      string
		sqlState string
	}{
		"the dead-letter table rejects it": {
			deadletter.Table{}, `alter table job_dead_letter add check (job_kind <> 'bad')`, "23514",
		},
		"the dead-letter table loses it": {
			deadletter.Table{}, `create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
			create trigger lose before insert on job_dead_letter for each row when (new.job_kind = 'bad') execute function lose()`, "",
		},
		"the function refuses it": {
			deadletter.Function{Name: pgx.Identifier{"mover"}}, moverFunction(`return '{"refused": true, "reason": "legal hold"}'`), "",
		},
		"the function returns NULL": {
			deadletter.Function{Name: pgx.Identifier{"mover"}}, moverFunction(`return null`), "",
		},
		"the function returns no object": {
			deadletter.Function{Name: pgx.Identifier{"mover"}}, moverFunction(`return '[1]'`), "",
		},
		"the function raises": {
			deadletter.Function{Name: pgx.Identifier{"mover"}}, moverFunction(`raise 'no' using errcode = 'P0001'`), "P0001",
		},
		"a mover in Go fails": {
			deadletter.MoverFunc(failForBad), `select 1`, "",
		},
		"a mover in Go panics": {
			deadletter.MoverFunc(panicForBad), `select 1`, "",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
			reapertest.Exec(t, pool, test.sql)
			reapertest.Stale(t, pool, "good", 10, 0, 5)
			reapertest.Stale(t, pool, "good", 10, 4, 5)
			reapertest.Stale(t, pool, "bad", 2, 4, 5)
			before := reapertest.BadRows(t, pool, "bad")

			result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: test.mover}), 100)

			require.Equal(t, 10, result.ResetCount)
			require.Equal(t, 10, result.DeadLetterCount)
			reapertest.RequireFailures(t, pool, result, "bad", test.sqlState, 2)
			require.Equal(t, before, reapertest.BadRows(t, pool, "bad"))
			require.Equal(t, 10, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter`))
		})
	}
}

// moverFunction is a function that moves a job, unless it is bad.
func moverFunction(forBad string) string {
	return `create function mover(p_job_id uuid, p_actor text, p_error text) returns jsonb language plpgsql as $$
		begin
			if exists (select from job_queue where job_id = p_job_id and job_kind = 'bad') then
				` + forBad + `;
			end if;
			return fn_job_move_to_dead_letter(p_job_id, p_actor, p_error);
		end $$`
}

// failForBad stands for a mover that, say, encodes jobs and cannot encode some.
func failForBad(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
	var bad bool
	err := tx.QueryRow(ctx, `select exists (select from job_queue where job_id = any($1::uuid[]) and job_kind = 'bad')`,
		batch.IDs()).Scan(&bad)
	if err != nil {
		return nil, err
	}
	if bad {
		return nil, &json.UnsupportedValueError{Str: "bad"}
	}
	return deadletter.Table{}.Move(ctx, tx, batch)
}

// panicForBad stands for a mover that dereferences what a job does not have.
func panicForBad(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
	receipts, err := failForBad(ctx, tx, batch)
	if err != nil {
		panic(err)
	}
	return receipts, nil
}

// What a mover depends on is away: no job is to blame, and a thousand of them
// must not be tried one by one.
func TestAMoverThatIsUnavailableEndsTheApply(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dying", 8, 4, 5)
	calls := 0
	mover := deadletter.MoverFunc(func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
		calls++
		return nil, fmt.Errorf("the bucket is away: %w", deadletter.ErrUnavailable)
	})

	_, err := reapertest.New(t, pool, reaper.Config{DeadLetter: mover}).Apply(t.Context(), reapertest.Actor, 10)

	require.ErrorIs(t, err, deadletter.ErrUnavailable)
	require.Equal(t, 1, calls)
	require.Equal(t, map[string]int{"leased": 8}, reapertest.States(t, pool))
}

// A policy or a source that panics for one odd number must not take the service
// with it, nor leave a transaction open.
func TestAPanicInThePolicyOrTheSourceIsAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	errOdd := errors.New("odd")

	for name, cfg := range map[string]reaper.Config{
		"policy": {Backoff: backoff.PolicyFunc(func(int, int64) int64 { panic(errOdd) })},
		"source": {Gates: panickingSource{errOdd}},
	} {
		_, err := reapertest.New(t, pool, cfg).Apply(t.Context(), reapertest.Actor, 10)
		require.ErrorIs(t, err, errOdd, name)
		require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
		reapertest.Exec(t, pool, `select from job_queue, queue_config for update nowait`)
	}
}

type panickingSource struct{ err error }

func (s panickingSource) Read(context.Context, pgx.Tx, []string) (gates.Values, error) { panic(s.err) }

// A mover that forgets a job, or invents one, would lose it: that is the mover's
// bug, and an error of the apply.
func TestAMoverMustReturnOneReceiptForEachJob(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ receipts []deadletter.Receipt }{
		"it returns none":        {nil},
		"it returns a stranger":  {[]deadletter.Receipt{{JobID: "stranger"}}},
		"it returns one too few": {[]deadletter.Receipt{{JobID: "stranger"}, {JobID: "stranger"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "dying", 1, 4, 5)
			mover := deadletter.MoverFunc(func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
				return test.receipts, nil
			})

			_, err := reapertest.New(t, pool, reaper.Config{DeadLetter: mover}).Apply(t.Context(), reapertest.Actor, 10)

			require.ErrorIs(t, err, reaper.ErrReceiptCount)
			require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
		})
	}
}

// An error that is not a row's must not be hunted through the batch, nor hidden
// as a failure of every job.
func TestAnErrorThatIsNoRowsIsTheAppliesError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "dying", 4, 4, 5)
	calls := 0
	mover := deadletter.MoverFunc(func(ctx context.Context, _ pgx.Tx, _ deadletter.Batch) ([]deadletter.Receipt, error) {
		calls++
		_, err := pool.Exec(ctx, `select from no_such_table`)
		return nil, err
	})

	result, err := reapertest.New(t, pool, reaper.Config{DeadLetter: mover}).Apply(t.Context(), reapertest.Actor, 10)

	require.Nil(t, result)
	require.Error(t, err)
	require.LessOrEqual(t, calls, 2+4) // the batch twice, and each job alone
	require.Equal(t, map[string]int{"leased": 4}, reapertest.States(t, pool))
	require.NotErrorIs(t, err, reaper.ErrOutcomeUnknown)
}

// A function that gives the job a new lease has not moved it, whatever it answers.
func TestAJobThatAFunctionLeavesLeasedIsNotMoved(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create function renew(id uuid, actor text, final_error text) returns jsonb language sql as $$
		update job_queue set lease_until = now() + interval '1 hour' where job_id = id;
		select '{"refused": false}'::jsonb $$`)
	reapertest.Stale(t, pool, "kind", 1, 4, 5)

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{DeadLetter: deadletter.Function{Name: pgx.Identifier{"renew"}}}), 10)

	require.Empty(t, result.Actions)
	require.Equal(t, 1, result.FailedCount)
	require.Equal(t, 1, reapertest.One[int](t, pool, `select count(*)::int from job_queue where attempts = 4 and lease_until < now()`))
}
