package deadletter_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// The table of letters may be huge, and the queue is. Each statement has to find its rows by an index,
// also with a plan that does not know its parameters.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	execute(t, pool, `create index on job_dead_letter (moved_at, dead_letter_id)`, `
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select gen_random_uuid(), 'k', 5, 5, 'e', 'me', '{}', now() - i * '10ms'::interval from generate_series(1, 100000) i`,
		`insert into job_queue (job_kind, state) select 'k', 'ready' from generate_series(1, 50000)`)
	ids := bury(t, pool, many(40)...)
	execute(t, pool, `delete from job_queue where job_id = any('{`+strings.Join(ids[:10], ",")+`}')`, `analyze`)
	recorder := &recorder{}
	traced := pgtest.Connect(t, pool, func(config *pgxpool.Config) { config.ConnConfig.Tracer = recorder })

	after := list(t, traced, deadletter.Filter{}, 20).Next
	list(t, traced, deadletter.Filter{After: after, Kinds: []string{"k"}}, 20)
	list(t, traced, deadletter.Filter{JobIDs: ids[:3]}, 20)
	letters := []string{letterOf(t, pool, ids[0]), letterOf(t, pool, ids[20])}
	require.Equal(t, 2, redriveAll(t, traced, deadletter.Filter{IDs: letters}).RedrivenCount)
	_, err := deadletter.Redrive(t.Context(), traced, deadletter.Store{}, operator, deadletter.Filter{After: after}, 20)
	require.NoError(t, err)
	execute(t, pool, `update job_dead_letter set redriven_at = moved_at where redriven_at is not null`)
	_, err = deadletter.Purge(t.Context(), traced, deadletter.Store{}, 30*time.Hour, deadletter.PurgeConfig{Batch: 5, Unredriven: true})
	require.NoError(t, err)

	names := map[string]bool{}
	for sql, args := range recorder.statements {
		name, found := strings.CutPrefix(strings.SplitN(sql, "\n", 2)[0], "-- deadletter.")
		if !found || name == "columns" || name == "lock_timeout" { // of no table
			continue
		}
		names[name] = true
		for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
			plan := explain(t, pool, mode, sql, args)
			require.NotContains(t, plan, "Seq Scan on job_", sql)
			require.Regexp(t, "(Index|Bitmap Heap) .*Scan (using .*)?on job_", plan, sql)
		}
	}
	require.Equal(t, []string{
		"count", "dead", "list", "mark", "passed", "purge", "purge_jobs", "purge_left", "purge_letters", "rebuild", "redrive", "revive",
		"rows", "unredriven",
	}, sorted(names))
}

func sorted(set map[string]bool) []string {
	var list []string
	for name := range set {
		list = append(list, name)
	}
	slices.Sort(list)
	return list
}

func explain(t *testing.T, pool *pgxpool.Pool, mode, sql string, args []any) string {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	execute(t, conn, `set plan_cache_mode = `+mode)
	return strings.Join(column(t, conn, "explain "+sql, args...), "\n")
}
