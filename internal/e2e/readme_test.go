package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

func runReaper(ctx context.Context, pool *pgxpool.Pool) error {
	r, err := reaper.New(pool, reaper.Config{
		Logger:   slog.Default(),
		MaxStale: 10_000, // if more leases have expired, reap nothing: a person should look first
	})
	if err != nil {
		return err
	}
	// The name is stored with dead letters; replicas may use the same one. Run ends with ctx.
	return r.Run(ctx, "billing-reaper", reaper.RunConfig{})
}

func reapOnce(ctx context.Context, r *reaper.Reaper) error {
	result, err := r.Apply(ctx, "billing-reaper", 1000)
	switch {
	case errors.Is(err, reaper.ErrOutcomeUnknown):
		return nil // all of it happened, or nothing; the next call finds out
	case err != nil:
		return err // nothing has changed
	case result.Refused:
		slog.Info("reaper refused", "reason", result.Reason)
	}
	for _, failure := range result.Failures {
		slog.Warn("job rejected", "job_id", failure.JobID, "sqlstate", failure.SQLState)
	}
	return nil
}

// resets and moves stand for the counters of the reader's metrics.
var resets, moves atomic.Int64

func countJobs(_ context.Context, pass reaper.Pass) {
	if pass.Err != nil { // then there is no Result
		return
	}
	resets.Add(int64(pass.Result.ResetCount))
	moves.Add(int64(pass.Result.DeadLetterCount))
}

func show(ctx context.Context, r *reaper.Reaper) error {
	result, err := r.DryRun(ctx, 20)
	if err != nil {
		return err
	}
	for _, job := range result.Jobs {
		fmt.Println(job.JobID, job.JobKind, job.OverdueSeconds, job.WouldAction)
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// A newcomer copies the README's code, and it does not compile.
func TestTheREADMEsGoIsCompiled(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)

	for _, page := range []string{"README.md", "docs/reference.md"} {
		for _, block := range reapertest.Fenced(t, page, "go") {
			require.Contains(t, string(source), block)
		}
	}
}

// The README's code does what the README says. The loop waits for the workers of
// a server that has just started, so it is only seen to run and to end.
func TestTheREADMEsGoWorks(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	countJobs(t.Context(), reaper.Pass{Err: reapertest.ErrEnd})
	countJobs(t.Context(), reaper.Pass{Result: &reaper.ApplyResult{ResetCount: 2, DeadLetterCount: 1}})
	require.EqualValues(t, 2, resets.Load())
	require.EqualValues(t, 1, moves.Load())
	require.NoError(t, show(t.Context(), r))
	require.NoError(t, reapOnce(t.Context(), r))
	require.Equal(t, map[string]int{"retry_waiting": 1}, reapertest.States(t, pool))

	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- runReaper(ctx, pool) }()
	cancel(reapertest.ErrEnd)
	require.ErrorIs(t, <-ended, reapertest.ErrEnd)
}

// A role that was given what the reference says must be able to work, and each of
// the grants must be needed: an operator hands out no right for nothing.
func TestTheGrantsAreEnoughAndNoneIsTooMuch(t *testing.T) {
	t.Parallel()
	grants := reapertest.GrantsOf(t)
	require.Len(t, grants, 6)

	for without := -1; without < len(grants); without++ {
		pool := reapertest.OpenQueue(t)
		reapertest.Stale(t, pool, "retryable", 1, 0, 5)
		reapertest.Stale(t, pool, "exhausted", 1, 4, 5)
		asRole := grantedPool(t, pool, grants, without)
		r := reapertest.New(t, asRole, reaper.Config{})
		_, dryRunErr := r.DryRun(t.Context(), 10)
		result, applyErr := r.Apply(t.Context(), reapertest.Actor, 10)

		switch without {
		case -1:
			require.NoError(t, dryRunErr)
			require.NoError(t, applyErr)
		case 0: // the second line covers the first, which is for those who only look
			require.NoError(t, applyErr)
		default:
			require.NoError(t, dryRunErr)
			if strings.Contains(grants[without], "on job_dead_letter") { // the reset does not depend on it
				require.NoError(t, applyErr)
				require.Equal(t, 1, result.ResetCount)
				require.Equal(t, "42501", result.Failures[0].SQLState)
				continue
			}
			var pgErr *pgconn.PgError
			require.ErrorAs(t, applyErr, &pgErr, grants[without])
			require.Equal(t, "42501", pgErr.Code)
		}
	}
}

// grantedPool is a pool as a new role that was given all grants but one.
func grantedPool(t *testing.T, pool *pgxpool.Pool, grants []string, without int) *pgxpool.Pool {
	t.Helper()
	role := reapertest.One[string](t, pool, `select 'grantee_' || md5(current_database())`)
	reapertest.Exec(t, pool, `create role `+role)
	t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
	for i, grant := range grants {
		if i != without {
			reapertest.Exec(t, pool, strings.ReplaceAll(grant, "leasereaper", role))
		}
	}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
}

// The other SQL of the README and the reference runs on the reference tables: opening
// the gates, the index, and the worker's fenced completion.
func TestTheREADMEsSQLRuns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `drop index job_queue_lease_until_idx`)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
		values ('k', 'leased', 2, 'me', now() + interval '1 minute')`)

	blocks := append(reapertest.Fenced(t, "README.md", "sql"), reapertest.Fenced(t, "docs/reference.md", "sql")...)
	for _, block := range blocks {
		switch {
		case strings.Contains(block, "$1"):
			var id string
			require.NoError(t, pool.QueryRow(t.Context(), `select job_id::text from job_queue`).Scan(&id))
			reapertest.Exec(t, pool, block, id, "me", 2)
		case !strings.HasPrefix(block, "grant"):
			reapertest.Exec(t, pool, block)
		}
	}

	require.Equal(t, map[string]int{"succeeded": 1}, reapertest.States(t, pool))
	require.Empty(t, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 10).Actions)
}

// The run book is read on a bad day, when nobody has time for a query that fails.
func TestTheRunBooksSQLRuns(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 3, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})
	require.Len(t, reapertest.Apply(t, r, 1).Actions, 1)

	for _, block := range reapertest.Fenced(t, "docs/operations.md", "sql") {
		reapertest.Exec(t, pool, block)
	}

	result, err := r.Apply(t.Context(), reapertest.Actor, 10) // the last block stops everything
	require.NoError(t, err)
	require.Equal(t, "queue.lease.reaper_enabled=false", result.Reason)
}
