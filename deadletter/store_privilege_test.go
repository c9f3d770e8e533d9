package deadletter_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Operators get a role of their own, with what the documentation names. The first
// redrive after an incident is no time to learn that something was left out.
func TestLookingAfterLettersTakesTheDocumentedPrivileges(t *testing.T) {
	t.Parallel()
	const (
		shown    = `grant select (dead_letter_id, job_id, job_kind, attempts, max_attempts, final_error, moved_by, moved_at, redriven_at, redriven_by) on job_dead_letter to @`
		letters  = `grant select on job_dead_letter to @`
		mark     = `grant update (redriven_at, redriven_by) on job_dead_letter to @`
		queue    = `grant select (job_id, state) on job_queue to @`
		revive   = `grant update (state, attempts, scheduled_at, lease_owner, lease_until, last_error) on job_queue to @`
		rebuild  = `grant insert on job_queue to @`
		sequence = `grant usage on sequence job_queue_number_seq to @`

		aged  = `grant select (dead_letter_id, job_id, moved_at, redriven_at) on job_dead_letter to @`
		lock  = `grant update (redriven_at) on job_dead_letter to @`
		purge = `grant delete on job_dead_letter to @`
		hold  = `grant update (state) on job_queue to @`
		drop  = `grant delete on job_queue to @`
	)
	numbered := `delete from job_queue; alter table job_queue add column number serial`
	list := func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.List(ctx, tx, deadletter.Store{}, deadletter.Filter{Kinds: []string{"a"}, ErrorContains: "e", OlderThan: 1, Status: "unredriven"}, 9)
		return err
	}
	withJobs := func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.ListWithJobs(ctx, tx, deadletter.Store{}, deadletter.Filter{}, 9)
		return err
	}
	redrive := func(ctx context.Context, tx pgx.Tx) error {
		result, err := deadletter.Redrive(ctx, tx, deadletter.Store{}, operator, deadletter.Filter{}, 9)
		if err == nil && result.RedrivenCount != 2 {
			return errors.New("not all were redriven")
		}
		return err
	}
	purged := func(ctx context.Context, tx pgx.Tx) error {
		_, err := deadletter.Purge(ctx, tx, deadletter.Store{}, 0, deadletter.PurgeConfig{})
		return err
	}
	purgedAll := func(ctx context.Context, tx pgx.Tx) error {
		result, err := deadletter.Purge(ctx, tx, deadletter.Store{}, 0, deadletter.PurgeConfig{Unredriven: true})
		if err == nil && result.JobCount != 2 {
			return errors.New("not all were removed")
		}
		return err
	}

	tests := map[string]struct {
		before string
		grants []string
		call   func(context.Context, pgx.Tx) error
		denied bool
	}{
		"list, as documented":             {``, []string{shown}, list, false},
		"list, without a column":          {``, []string{aged}, list, true},
		"list with jobs, as documented":   {``, []string{letters}, withJobs, false},
		"list with jobs, without them":    {``, []string{shown}, withJobs, true},
		"redrive, as documented":          {``, []string{letters, mark, queue, revive}, redrive, false},
		"redrive, without the mark":       {``, []string{letters, queue, revive}, redrive, true},
		"redrive, without the queue":      {``, []string{letters, mark, queue}, redrive, true},
		"redrive, without a queue column": {``, []string{letters, mark, queue, hold}, redrive, true},
		"rebuild, as documented":          {`delete from job_queue`, []string{letters, mark, queue, revive, rebuild}, redrive, false},
		"rebuild, without insert":         {`delete from job_queue`, []string{letters, mark, queue, revive}, redrive, true},
		"rebuild, numbered":               {numbered, []string{letters, mark, queue, revive, rebuild, sequence}, redrive, false},
		"rebuild, without the sequence":   {numbered, []string{letters, mark, queue, revive, rebuild}, redrive, true},
		"purge, as documented":            {`drop table job_queue`, []string{aged, lock, purge}, purged, false},
		"purge, without the lock":         {``, []string{aged, purge}, purged, true},
		"purge, without delete":           {`update job_dead_letter set redriven_at = moved_at`, []string{aged, lock}, purged, true},
		"purge of all, as documented":     {``, []string{aged, lock, purge, queue, hold, drop}, purgedAll, false},
		"purge of all, not of the queue":  {``, []string{aged, lock, purge, queue, hold}, purgedAll, true},
		"purge of all, without its lock":  {``, []string{aged, lock, purge, queue, drop}, purgedAll, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, _ := openLetters(t, "a", "b")
			reapertest.Exec(t, pool, test.before)
			tx := reapertest.Begin(t, pool)
			become(t, pool, tx, test.grants)

			err := test.call(t.Context(), tx)
			if test.denied {
				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, "42501", pgErr.Code)
				return
			}
			require.NoError(t, err)
		})
	}
}
