package suite_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// sqlLeft is what a contender left behind. A batch's own now() tells nothing, so
// times are shown as what they are from it, and keys that are made by chance not
// at all.
const sqlLeft = `
select jsonb_agg(row order by row ? 'final_error', row ->> 'job_id')
from (
  select to_jsonb(q) - 'scheduled_at' || jsonb_build_object(
    'wait', case when state = 'retry_waiting' and last_error is not null then
      round(extract(epoch from scheduled_at - now()) / 5) end) as row
  from job_queue q
  union all
  select to_jsonb(d) - 'dead_letter_id' - 'moved_at' from job_dead_letter d
) rows`

func left(ctx context.Context, t *testing.T, pool *pgxpool.Pool) []map[string]any {
	t.Helper()
	rows, err := pool.Query(ctx, sqlLeft)
	require.NoError(t, err)
	rowsOf, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]map[string]any])
	require.NoError(t, err)
	return rowsOf
}

// A contender that does less than the others is faster than they are, and a goal
// set by it is no goal.
func TestContendersLeaveTheSameBehind(t *testing.T) {
	t.Parallel()
	b, err := bed.Start(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })
	shape := bed.Shape{Rows: 500, Stale: 200, Exhausted: 10}
	const limit = 120

	reap := func(entrant suite.Make) ([]map[string]any, suite.Tally) {
		q, err := b.Clone(t.Context(), shape.Fixture())
		require.NoError(t, err)
		pool, err := q.Connect(t.Context())
		require.NoError(t, err)
		contender, err := entrant(pool)
		require.NoError(t, err)
		count, err := contender.Reap(t.Context(), limit)
		require.NoError(t, err)
		tally, err := count()
		require.NoError(t, err)
		require.Equal(t, limit, tally.Jobs(), contender.Name)
		return left(t.Context(), t, pool), tally
	}
	want, tally := reap(suite.Oracle)
	require.NotZero(t, tally.Moves)
	for _, entrant := range []suite.Make{suite.Library, suite.Single} {
		got, same := reap(entrant)
		require.Equal(t, tally, same)
		require.Equal(t, want, got)
	}
}

// A benchmark of a closed gate must not be won by whoever does not look.
func TestTheSingleStatementAsksTheGates(t *testing.T) {
	t.Parallel()
	b, err := bed.Start(t.Context(), true)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Stop()) })

	for key, closed := range map[string]string{
		"queue.job_substrate.enabled":     "false",
		"queue.lease.reaper_enabled":      "false",
		"queue.lease.reaper_dry_run_only": "true",
	} {
		q, err := b.Clone(t.Context(), bed.Shape{Rows: 50, Stale: 20}.Fixture())
		require.NoError(t, err)
		pool, err := q.Connect(t.Context())
		require.NoError(t, err)
		_, err = pool.Exec(t.Context(), `update queue_config set value = $2 where key = $1`, key, closed)
		require.NoError(t, err)
		single, err := suite.Single(pool)
		require.NoError(t, err)

		count, err := single.Reap(t.Context(), 10)
		require.NoError(t, err)

		tally, err := count()
		require.NoError(t, err)
		require.Zero(t, tally.Jobs(), key)
	}
}
