package deadletter_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// The table of letters may be huge, and the queue is. Each statement has to find its rows by an index,
// also with a plan that does not know its parameters.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `create index on job_dead_letter (moved_at, dead_letter_id)`)
	reapertest.Exec(t, pool, `
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select gen_random_uuid(), 'k', 5, 5, 'e', 'me', '{}', now() - i * '10ms'::interval from generate_series(1, 100000) i`)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state) select 'k', 'ready' from generate_series(1, 50000)`)
	ids := bury(t, pool, many(40)...)
	reapertest.Exec(t, pool, `delete from job_queue where job_id = any('{`+strings.Join(ids[:10], ",")+`}')`)
	reapertest.Exec(t, pool, `analyze`)
	traced, recorder := reapertest.Recording(t, pool)

	after := list(t, traced, deadletter.Filter{}, 20).Next
	list(t, traced, deadletter.Filter{After: after, Kinds: []string{"k"}}, 20)
	list(t, traced, deadletter.Filter{JobIDs: ids[:3]}, 20)
	letters := []string{letterOf(t, pool, ids[0]), letterOf(t, pool, ids[20])}
	require.Equal(t, 2, redriveAll(t, traced, deadletter.Filter{IDs: letters}).RedrivenCount)
	_, err := deadletter.Redrive(t.Context(), traced, deadletter.Store{}, operator, deadletter.Filter{After: after}, 20)
	require.NoError(t, err)
	reapertest.Exec(t, pool, `update job_dead_letter set redriven_at = moved_at where redriven_at is not null`)
	_, err = deadletter.Purge(t.Context(), traced, deadletter.Store{}, 30*time.Hour, deadletter.PurgeConfig{Batch: 5, Unredriven: true})
	require.NoError(t, err)

	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	statements := map[string]reapertest.Sent{}
	for _, s := range recorder.Statements() {
		statements[s.SQL] = s
	}
	names := map[string]bool{}
	for sql, s := range statements {
		name, found := strings.CutPrefix(s.Name(), "deadletter.")
		if !found || slices.Contains([]string{"columns", "lock_timeout", "plain_styles", "own_styles"}, name) { // of no table
			continue
		}
		names[name] = true
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			reapertest.Exec(t, conn, `set plan_cache_mode = `+mode)
			plan := strings.Join(reapertest.Column(t, conn, "explain "+sql, s.Args...), "\n")
			require.NotContains(t, plan, "Seq Scan on job_", sql)
			require.Regexp(t, "(Index|Bitmap Heap) .*Scan (using .*)?on job_", plan, sql)
		}
	}
	require.Equal(t, []string{
		"count", "dead", "list", "mark", "passed", "purge", "purge_jobs", "purge_left", "purge_letters", "rebuild", "redrive", "revive",
		"rows", "unredriven",
	}, slices.Sorted(maps.Keys(names)))
}
