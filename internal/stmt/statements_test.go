package stmt_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// How many jobs the plan tests have that are not stale, how many that are, and
// how many of them an apply takes.
const (
	planJobs  = 100_000
	planStale = 10_000
	planBatch = 100
)

// planRows is how many rows each statement may look at. What sorts jobs of one
// lease end by their ids reads some dozens ahead.
var planRows = map[string]int{
	"reaper.dry_run":            planStale + planBatch + 32,
	"reaper.dry_run_up_to":      planBatch + 1 + planBatch + 32,
	"reaper.claim":              planBatch + 32,
	"reaper.claim_plan":         planBatch,
	"reaper.drift":              planBatch,
	"reaper.overfull":           planStale + 1, // the rejected job too
	"reaper.poll":               2,
	"reaper.reset":              planBatch,
	"reaper.bump":               planBatch,
	"reaper.close":              planBatch,
	"reaper.close_moved":        planBatch,
	"reaper.unclosed":           planBatch,
	"reaper.settings":           0,
	"reaper.lock_timeout":       0,
	"reaper.planner_settings":   0,
	"reaper.is_plain":           0,
	"reaper.is_jsonb":           0,
	"reaper.is_zoneless":        0,
	"deadletter.insert":         planBatch,
	"deadletter.insert_checked": planBatch,
	"deadletter.call":           0,
	"gates.read":                4,
}

// unplanned are statements of a loop and of the isolating way that nothing of the
// below sends: one row, or none.
var unplanned = []string{"reaper.try_write", "reaper.lock_queue", "reaper.lock_letters", "reaper.left"}

// planModes are the settings under which the statements are planned.
var planModes = map[string]string{
	"with the parameters":    `set plan_cache_mode = force_custom_plan`,
	"without the parameters": `set plan_cache_mode = force_generic_plan`,
	"with the parameters and nested loops alone": `set plan_cache_mode = force_custom_plan;
		set enable_hashjoin = off; set enable_mergejoin = off`,
	"without the parameters and nested loops alone": `set plan_cache_mode = force_generic_plan;
		set enable_hashjoin = off; set enable_mergejoin = off`,
}

// A statement that reads the whole queue, or the whole backlog for each batch, is
// unnoticed in a test's ten rows and brings the database down at ten million. The
// server chooses its way by statistics that may be hours old, and for a prepared
// statement without its parameters: none of that may lead it off the index.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ beforeJobs, beforeStaleOnes, afterAll string }{
		"analysed when the table was empty": {beforeJobs: `analyze`},
		"analysed when nothing was stale":   {beforeStaleOnes: `analyze`},
		"analysed just now":                 {afterAll: `analyze`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.WithOracle(t, reapertest.OpenQueue(t))
			reapertest.Exec(t, pool, `alter table job_queue set (autovacuum_enabled = off);
				alter table queue_config set (autovacuum_enabled = off)`)
			reapertest.Exec(t, pool, test.beforeJobs)
			reapertest.Exec(t, pool, `insert into queue_config (key, value) select 'other.' || i, 'x' from generate_series(1, 10000) i`)
			reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until, payload)
				select 'kind', (array['ready', 'succeeded', 'leased', 'retry_waiting'])[1 + i % 4], now() + interval '1 hour',
					jsonb_build_object('n', repeat('x', 100))
				from generate_series(1, $1::int) i`, planJobs)
			reapertest.Exec(t, pool, test.beforeStaleOnes)
			reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, attempts, lease_until)
				select 'stale', 'leased', case when i % 10 = 0 then 4 else 0 end, now() - make_interval(secs => i)
				from generate_series(1, $1::int) i`, planStale)
			reapertest.Exec(t, pool, test.afterAll)
			log := recordAll(t, pool)
			for mode, settings := range planModes {
				t.Run(mode, func(t *testing.T) {
					replay(t, pool, settings, log, func(db reapertest.Execer, s reapertest.Sent) { checkPlan(t, db, s) })
				})
			}
		})
	}
}

// The test above knows the statements of the sources, or it would not say much.
func TestThePlansOfNoStatementAreForgotten(t *testing.T) {
	t.Parallel()

	var names []string
	for _, file := range []string{"claim.go", "dryrun.go", "poll.go", "write.go", "tables.go",
		"../../reaper/settings.go", "../letter/letter.go", "../letter/function.go", "../gatesql/table.go"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, found := range regexp.MustCompile("`-- (.*)\n").FindAllSubmatch(source, -1) {
			names = append(names, string(found[1]))
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(unplanned, name) })
	require.ElementsMatch(t, slices.Collect(maps.Keys(planRows)), names)
}

// recordAll has every statement sent at least once, and undoes what it did.
func recordAll(t *testing.T, admin *pgxpool.Pool) []reapertest.Sent {
	t.Helper()
	pool, recorder := reapertest.Recording(t, admin)
	for _, cfg := range []reaper.Config{
		{},
		{DeadLetter: deadletter.Function{}, MaxStale: 10 * planStale, CountUpTo: planBatch},
		{Kinds: []string{"stale"}, ExceptKinds: []string{"other"}, KindGrace: map[string]time.Duration{"stale": time.Second}},
	} {
		r := reapertest.New(t, pool, cfg)
		plan, err := r.DryRun(t.Context(), planBatch)
		require.NoError(t, err)
		_, err = r.ApplyPlan(t.Context(), reapertest.Actor, plan)
		require.NoError(t, err)
		plan, err = r.DryRun(t.Context(), 1) // for few jobs the server has other ways
		require.NoError(t, err)
		_, err = r.ApplyPlan(t.Context(), reapertest.Actor, plan)
		require.NoError(t, err)
		require.Len(t, reapertest.Apply(t, r, planBatch).Actions, planBatch)
	}
	recordRejections(t, admin, pool)
	recordRefusals(t, admin, pool)
	recordDrain(t, pool)
	recordLooks(t, pool, recorder)
	reapertest.Exec(t, admin, `update job_queue set state = 'leased', attempts = attempts - 1,
		lease_until = clock_timestamp() - interval '1 day' where last_error is not null`)

	log := recorder.Statements()
	for name := range planRows {
		require.True(t, slices.ContainsFunc(log, func(s reapertest.Sent) bool { return s.Name() == name }), name)
	}
	return log
}

// recordRejections has an apply write its jobs in groups, since one is rejected.
func recordRejections(t *testing.T, admin, pool *pgxpool.Pool) {
	t.Helper()
	reapertest.Exec(t, admin, `alter table job_queue add constraint rejecting check (job_kind <> 'rejected' or state = 'leased') not valid;
		insert into job_queue (job_kind, state, lease_until) values ('rejected', 'leased', now() - interval '1 year')`)
	require.Equal(t, 1, reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), planBatch).FailedCount)
	reapertest.Exec(t, admin, `alter table job_queue drop constraint rejecting`)
}

// recordRefusals has the gates read with a lock, and then without.
func recordRefusals(t *testing.T, admin, pool *pgxpool.Pool) {
	t.Helper()
	reapertest.CloseGate(t, admin)
	defer reapertest.OpenGates(t, admin)
	r := reapertest.New(t, pool, reaper.Config{})
	reapertest.RequireRefused(t, r)
	reapertest.RequireRefused(t, r)
}

// recordDrain has a claim begin at a place. Its hook keeps the commit from
// travelling with the writes, which takes other statements.
func recordDrain(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	errEnough, batches := errors.New("enough"), 0
	r := reapertest.New(t, pool, reaper.Config{OnApply: func(context.Context, pgx.Tx, *reaper.ApplyResult) error {
		batches++
		if batches < 2 {
			return nil
		}
		return errEnough
	}})
	_, err := r.Drain(t.Context(), reapertest.Actor, planBatch)
	require.ErrorIs(t, err, errEnough)
}

// recordLooks has a loop look at everything, and then from a place on.
func recordLooks(t *testing.T, pool *pgxpool.Pool, recorder *reapertest.Recorder) {
	t.Helper()
	passes := make(chan reaper.Pass, 1000)
	cfg := reapertest.Quick(func(_ context.Context, p reaper.Pass) { passes <- p })
	cfg.Batch = planBatch
	stop := reapertest.Run(t, reapertest.New(t, pool, reaper.Config{Gates: gates.Static{}}), cfg)
	require.True(t, (<-passes).Result.Refused)
	stop()
	look := recorder.Named("reaper.poll")[0]
	recorder.Keep(look.SQL, []any{look.Args[0], pgtype.Timestamptz{Time: time.Now(), Valid: true}})
}

// replay runs the transactions of a log again, with each named statement given to
// do instead, and undoes what they do.
func replay(t *testing.T, pool *pgxpool.Pool, settings string, log []reapertest.Sent, do func(reapertest.Execer, reapertest.Sent)) {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	reapertest.Exec(t, conn, settings)
	defer reapertest.Exec(t, conn, `reset all`)

	for _, s := range log {
		switch {
		case s.SQL == "commit":
			reapertest.Exec(t, conn, `rollback`)
		case s.Name() == "":
			reapertest.Exec(t, conn, s.SQL, s.Args...)
		default:
			do(conn, s.Readdressed(t, conn))
		}
	}
}

// checkPlan requires of a statement that it finds its rows by an index and looks
// at no more of them than it has to.
func checkPlan(t *testing.T, db reapertest.Execer, s reapertest.Sent) {
	t.Helper()
	p := explain(t, db, s)
	if s.Name() == "reaper.claim" {
		checkLocks(t, db, p, s.Args[1])
	}
	looked := 0
	for _, scan := range slices.Concat(p.scans("job_queue"), p.scans("queue_config")) {
		require.NotEqual(t, "Seq Scan", scan.Node, "%s\n%s", s.SQL, p)
		looked += scan.rows()
	}
	require.LessOrEqual(t, looked, planRows[s.Name()], "%s\n%s", s.SQL, p)
}

// checkLocks requires of a claim that it goes through the backlog once, and locks
// no more than its limit. In the inner side of a join it would do so once a row.
func checkLocks(t *testing.T, db reapertest.Execer, p plan, limit any) {
	t.Helper()
	locks := p.of("LockRows")
	require.Len(t, locks, 1, p)
	require.InDelta(t, 1, locks[0].Loops, 0, p)
	require.Equal(t, limit, reapertest.One[int64](t, db, `select count(*) from job_queue where xmax = pg_current_xact_id()::xid`), p)
}
