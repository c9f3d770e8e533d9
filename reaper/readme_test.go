package reaper_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

func reapEvery(ctx context.Context, pool *pgxpool.Pool, interval time.Duration) error {
	r, err := reaper.New(pool, reaper.Config{})
	if err != nil {
		return err
	}
	for tick := time.Tick(interval); ; {
		result, err := r.Apply(ctx, "billing-reaper", 1000)
		switch {
		case errors.Is(err, reaper.ErrOutcomeUnknown):
			slog.Warn("the commit's answer was lost; the next pass finds out", "err", err)
		case err != nil:
			slog.Error("reap", "err", err)
		case result.Refused:
			slog.Info("reaper refused", "reason", result.Reason)
		default:
			slog.Info("reaped", "reset", result.ResetCount, "dead", result.DeadLetterCount, "failed", result.FailedCount)
		}
		select {
		case <-tick:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
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

// fenced returns the README's blocks in a language.
func fenced(t *testing.T, language string) []string {
	t.Helper()
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var blocks []string
	for _, match := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllSubmatch(readme, -1) {
		blocks = append(blocks, string(match[1]))
	}
	require.NotEmpty(t, blocks)
	return blocks
}

// A newcomer copies the README's code, and it does not compile.
func TestTheREADMEsGoIsCompiled(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("readme_test.go")
	require.NoError(t, err)

	for _, block := range fenced(t, "go") {
		require.Contains(t, string(source), block)
	}
}

// The README's loop reaps, and its dry run shows.
func TestTheREADMEsGoWorks(t *testing.T) {
	t.Parallel()
	pool := openQueue(t)
	stale(t, pool, "kind", 1, 0, 5)
	require.NoError(t, show(t.Context(), newReaper(t, pool, reaper.Config{})))

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reapEvery(ctx, pool, time.Hour) }()
	require.Eventually(t, func() bool { return states(t, pool)["retry_waiting"] == 1 }, waiting, tick)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// A role that was given what the README says must be able to work, and each of
// the grants must be needed: an operator hands out no right for nothing.
func TestTheREADMEsGrantsAreEnoughAndNoneIsTooMuch(t *testing.T) {
	t.Parallel()
	grants := grantsOf(t)
	require.Len(t, grants, 6)

	for without := -1; without < len(grants); without++ {
		pool := openQueue(t)
		stale(t, pool, "retryable", 1, 0, 5)
		stale(t, pool, "exhausted", 1, 4, 5)
		asRole := grantedPool(t, pool, grants, without)
		r := newReaper(t, asRole, reaper.Config{})
		_, dryRunErr := r.DryRun(t.Context(), 10)
		_, applyErr := r.Apply(t.Context(), actor, 10)

		switch without {
		case -1:
			require.NoError(t, dryRunErr)
			require.NoError(t, applyErr)
		case 0: // the second line covers the first, which is for those who only look
			require.NoError(t, applyErr)
		default:
			require.NoError(t, dryRunErr)
			var pgErr *pgconn.PgError
			require.ErrorAs(t, applyErr, &pgErr, grants[without])
			require.Equal(t, "42501", pgErr.Code)
		}
	}
}

func grantsOf(t *testing.T) []string {
	t.Helper()
	for _, block := range fenced(t, "sql") {
		if strings.HasPrefix(block, "grant") {
			return strings.Split(strings.TrimSpace(block), "\n")
		}
	}
	return nil
}

// grantedPool is a pool as a new role that was given all grants but one.
func grantedPool(t *testing.T, pool *pgxpool.Pool, grants []string, without int) *pgxpool.Pool {
	t.Helper()
	role := one[string](t, pool, `select 'grantee_' || md5(current_database())`)
	exec(t, pool, `create role `+role)
	t.Cleanup(func() { dropRole(t, pool, role) })
	for i, grant := range grants {
		if i != without {
			exec(t, pool, strings.ReplaceAll(grant, "leasereaper", role))
		}
	}
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
}

// The README's other SQL runs on the reference tables: opening the gates, the
// index, and the worker's fenced completion.
func TestTheREADMEsSQLRuns(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	exec(t, pool, `drop index job_queue_lease_until_idx`)
	exec(t, pool, `insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
		values ('k', 'leased', 2, 'me', now() + interval '1 minute')`)

	for _, block := range fenced(t, "sql") {
		switch {
		case strings.Contains(block, "$1"):
			var id string
			require.NoError(t, pool.QueryRow(t.Context(), `select job_id::text from job_queue`).Scan(&id))
			exec(t, pool, block, id, "me", 2)
		case !strings.HasPrefix(block, "grant"):
			exec(t, pool, block)
		}
	}

	require.Equal(t, map[string]int{"succeeded": 1}, states(t, pool))
	require.Empty(t, apply(t, newReaper(t, pool, reaper.Config{}), 10).Actions)
}
