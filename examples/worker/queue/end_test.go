package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/queue"
)

var errEffects = errors.New("the effects failed")

// write is an effect that can be counted.
func write(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `insert into worker_receipt (job_id, done_by) values (gen_random_uuid(), 'test')`)
	return err
}

const receipts = `select count(*) from worker_receipt`

// A job that has its effects and is not completed is done again; one that is
// completed without them is never done.
func TestEffectsAndCompletionHappenTogether(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		effects  queue.Effects
		deferred string // what a constraint trigger does at the commit
		err      error
		state    string
		receipts int
	}{
		"all goes well": {effects: write, state: "succeeded", receipts: 1},
		"no effects":    {state: "succeeded"},
		"the effects fail": {
			effects: func(ctx context.Context, tx pgx.Tx) error { return errors.Join(write(ctx, tx), errEffects) },
			err:     errEffects, state: "leased",
		},
		"a statement of theirs fails": {
			effects: func(ctx context.Context, tx pgx.Tx) error {
				_, err := tx.Exec(ctx, `select 1/0`)
				return errors.Join(err, errEffects)
			},
			err: errEffects, state: "leased",
		},
		"they swallow that": {
			effects: func(ctx context.Context, tx pgx.Tx) error {
				_, _ = tx.Exec(ctx, `select 1/0`)
				return nil
			},
			err: pgx.ErrTxCommitRollback, state: "leased",
		},
		"the commit is turned away": {
			effects: write, deferred: `raise exception 'no'`, state: "leased",
		},
		"the connection breaks during the commit": {
			effects: write, deferred: `perform pg_terminate_backend(pg_backend_pid())`,
			err: queue.ErrUnknown, state: "leased",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			if test.deferred != "" {
				fixture.Exec(t, pool, `create function late() returns trigger language plpgsql as $$
					begin `+test.deferred+`; return null; end $$;
					create constraint trigger late after insert on worker_receipt
					deferrable initially deferred for each row execute function late()`)
			}
			q := open(t, pool, queue.Config{})
			enqueue(t, pool, 5)

			err := q.Complete(t.Context(), claim(t, q), test.effects)

			require.Equal(t, test.state == "succeeded", err == nil, err)
			if test.err != nil {
				require.ErrorIs(t, err, test.err)
			}
			require.Equal(t, errors.Is(test.err, queue.ErrUnknown), errors.Is(err, queue.ErrUnknown), err)
			require.Equal(t, test.state, fixture.One[string](t, pool, `select state from job_queue`))
			require.Equal(t, test.receipts, fixture.One[int](t, pool, receipts))
		})
	}
}

// A worker that lost the job would have its effects in addition to those of the new one.
func TestALostJobHasNoEffects(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{})
	enqueue(t, pool, 5)
	job := claim(t, q)
	expire(t, pool)
	require.Equal(t, 1, reap(t, pool).ResetCount)

	err := q.Complete(t.Context(), job, func(context.Context, pgx.Tx) error {
		t.Error("the effects were called")
		return nil
	})

	require.ErrorIs(t, err, queue.ErrLost)
}

// The effects take longer than the lease: nobody may give the job away meanwhile.
func TestTheRowsLockHoldsTheJobDuringItsEffects(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{})
	enqueue(t, pool, 5)
	job := claim(t, q)
	expire(t, pool)

	require.NoError(t, q.Complete(t.Context(), job, func(context.Context, pgx.Tx) error {
		require.Empty(t, reap(t, pool).Actions)
		return nil
	}))
}

// A job that fails is tried again at once, or never, or for ever.
func TestAFailedJobWaitsForItsNextTryAndDies(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{Name: "me", BackoffBaseSec: 100})
	enqueue(t, pool, 3)

	for _, wait := range []float64{100, 200} {
		buried, err := q.Fail(t.Context(), claim(t, q), "no luck")
		require.NoError(t, err)
		require.False(t, buried)
		require.Equal(t, "retry_waiting no luck", fixture.One[string](t, pool, `select concat_ws(' ', state, last_error,
			lease_owner, lease_until) from job_queue`))
		due := fixture.One[float64](t, pool, `select extract(epoch from scheduled_at - now())::float8 from job_queue`)
		require.LessOrEqual(t, due, wait)
		require.Greater(t, due, wait*0.8)
		fixture.Exec(t, pool, `update job_queue set scheduled_at = now()`)
	}
	buried, err := q.Fail(t.Context(), claim(t, q), "no luck")
	require.NoError(t, err)
	require.True(t, buried)
	require.Equal(t, "dead_letter 3 no luck", fixture.One[string](t, pool, `select concat_ws(' ', state, attempts,
		last_error, lease_owner, lease_until) from job_queue`))
	require.Equal(t, "send 3 3 no luck me", fixture.One[string](t, pool, `select concat_ws(' ', job_kind, attempts,
		max_attempts, final_error, moved_by) from job_dead_letter`))
}

// Whoever looks at dead letters, or sends them back, would need to know who wrote
// each of them.
func TestADeadLetterIsLikeTheReapers(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	q := open(t, pool, queue.Config{})
	enqueue(t, pool, 1)
	_, err := q.Fail(t.Context(), claim(t, q), "no luck")
	require.NoError(t, err)
	enqueue(t, pool, 1)
	claim(t, q)
	expire(t, pool)
	require.Equal(t, 1, reap(t, pool).DeadLetterCount)

	require.Equal(t, 1, fixture.One[int](t, pool, `select count(distinct (
		array(select jsonb_object_keys(job) order by 1), job->>'state', job->>'attempts', attempts, max_attempts,
		job->>'lease_owner' is null)) from job_dead_letter`))
}

// What a handler says may hold anything, and an error that cannot be stored would
// leave the job leased.
func TestAnyReasonIsStored(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ reason, want string }{
		"plain":                {"no", "no"},
		"empty":                {"", ""},
		"with a NUL":           {"a\x00b", "ab"},
		"not UTF-8":            {"a\xffb", "ab"},
		"long":                 {strings.Repeat("x", 5000), strings.Repeat("x", 2000)},
		"cut within a letter":  {strings.Repeat("x", 1999) + "ä", strings.Repeat("x", 1999)},
		"looks like a command": {"'; drop table job_queue; --", "'; drop table job_queue; --"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			q := open(t, pool, queue.Config{})
			enqueue(t, pool, 5)

			_, err := q.Fail(t.Context(), claim(t, q), test.reason)
			require.NoError(t, err)
			require.Equal(t, test.want, fixture.One[string](t, pool, `select last_error from job_queue`))
		})
	}
}

// A mover that refuses, fails, or closes the row itself.
func TestTheMoverHasTheLastWord(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		mover deadletter.MoverFunc
		ok    bool
		state string
	}{
		"it refuses": {
			mover: func(_ context.Context, _ pgx.Tx, b deadletter.Batch) ([]deadletter.Receipt, error) {
				return []deadletter.Receipt{deadletter.Refuse(b.Jobs[0].ID, "full")}, nil
			},
			state: "leased 0",
		},
		"it fails": {
			mover: func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
				return nil, errEffects
			},
			state: "leased 0",
		},
		"it says nothing": {
			mover: func(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) { return nil, nil },
			state: "leased 0",
		},
		"it closes the row itself": {
			mover: func(ctx context.Context, tx pgx.Tx, b deadletter.Batch) ([]deadletter.Receipt, error) {
				_, err := tx.Exec(ctx, `update job_queue set state = 'archived', lease_owner = null, lease_until = null`)
				return []deadletter.Receipt{{JobID: b.Jobs[0].ID}}, err
			},
			ok: true, state: "archived 1",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			q := open(t, pool, queue.Config{DeadLetter: test.mover})
			enqueue(t, pool, 1)

			buried, err := q.Fail(t.Context(), claim(t, q), "no")

			require.Equal(t, test.ok, err == nil, err)
			require.Equal(t, test.ok, buried)
			require.Equal(t, test.state, fixture.One[string](t, pool, `select state || ' ' || attempts from job_queue`))
		})
	}
}
