package reaper_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// Through the coordinator Citus refuses each apply. Without this problem the first that an
// operator reads is that an index is missing, which it is not.
func TestVerifyFindsADistributedQueue(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `create table pg_dist_partition (logicalrelid regclass);
		create table job_queue_102008 (like job_queue including all);
		drop index job_queue_lease_until_idx`)
	shard := reaper.Config{Queue: reaper.Table{Name: pgx.Identifier{"job_queue_102008"}}}
	require.Equal(t, reaper.CodeIndexMissing, reapertest.OnlyProblem(t, pool, reaper.Config{}).Code)

	reapertest.Exec(t, pool, `insert into pg_dist_partition values ('job_queue')`)

	problem := reapertest.OnlyProblem(t, pool, reaper.Config{})
	require.Equal(t, reaper.CodeDistributedTable, problem.Code)
	require.Equal(t, reaper.SeverityError, problem.Severity)
	require.Equal(t, `"job_queue"`, problem.Object)
	require.Empty(t, reapertest.Verify(t, pool, shard).Problems)
}
