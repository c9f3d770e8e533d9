package service_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A deployment that starts before its migrations, or with the wrong role, must not replace
// workers that can do jobs. It becomes ready by itself when the tables are there.
func TestAServiceIsReadyOnceItsTablesAre(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		breaks, repairs string
		reason          string
	}{
		"the queue is missing": {
			`alter table job_queue rename to old_queue`, `alter table old_queue rename to job_queue`,
			`"job_queue": The queue does not exist`,
		},
		"the dead letters are missing": {
			`alter table job_dead_letter rename to old`, `alter table old rename to job_dead_letter`,
			`"job_dead_letter": The dead-letter table does not exist`,
		},
		"the settings are missing": {
			`alter table queue_config rename to old`, `alter table old rename to queue_config`,
			`"queue_config": The settings table does not exist`,
		},
		"a column is missing": {
			`alter table job_queue rename lease_owner to locked_by`, `alter table job_queue rename locked_by to lease_owner`,
			`"job_queue"."lease_owner": The column does not exist.`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			fixture.Exec(t, pool, test.breaks)
			r := start(t, pool, quick(service.Config{}))
			status, body := r.get(t, "/readyz")
			require.Equal(t, 503, status, body)
			require.Contains(t, body, test.reason)

			fixture.Exec(t, pool, test.repairs)

			require.Eventually(t, func() bool { status, body = r.get(t, "/readyz"); return status == 200 },
				fixture.Waiting, 50*fixture.Tick, "%s", body)
		})
	}
}

// The migration made the tables, and nobody granted anything.
func TestAServiceWhoseRoleLacksPrivilegesIsNotReady(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	role := fixture.One[string](t, pool, `select current_database() || '_worker'`)
	fixture.Exec(t, pool, `create role `+role)
	t.Cleanup(func() {
		_, err := pool.Exec(context.WithoutCancel(t.Context()), `drop owned by `+role+`; drop role `+role)
		require.NoError(t, err)
	})
	as := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })
	r := start(t, as, quick(service.Config{}))
	status, body := r.get(t, "/readyz")
	require.Equal(t, 503, status)
	require.Regexp(t, `"job_queue": The role \w+ lacks select`, body)

	fixture.Exec(t, pool, `grant select, insert, update, delete on all tables in schema public to `+role)

	require.Eventually(t, func() bool { status, body = r.get(t, "/readyz"); return status == 200 },
		fixture.Waiting, 50*fixture.Tick, "%s", body)
}

// Jobs can be done without a reaper. If one mistyped setting made all workers unready,
// that would stop the queue.
func TestAServiceWhoseReaperIsRefusedIsReady(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql string }{
		"a gate is closed":          {`update queue_config set value = 'false' where key = '` + gates.ReaperEnabled + `'`},
		"a setting does not parse":  {`update queue_config set value = 'perhaps' where key = '` + gates.ReaperEnabled + `'`},
		"the index is missing":      {`drop index job_queue_lease_until_idx`},
		"a lease has no end at all": {`insert into job_queue (job_kind, state) values ('walk_the_dog', 'leased')`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := fixture.Queue(t)
			fixture.Exec(t, pool, test.sql)
			status, body := start(t, pool, quick(service.Config{})).get(t, "/readyz")
			require.Equal(t, 200, status, body)
		})
	}
}

// A migration that holds a table for long makes probes wait, and a probe without an
// answer tells nobody anything.
func TestAServiceWhoseTableIsLockedSaysSoInTime(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	r := start(t, pool, quick(service.Config{}))
	migration, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer migration.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // it is over then
	fixture.Exec(t, migration, `lock table job_queue`)

	status, body := r.get(t, "/readyz")
	require.Equal(t, 503, status)
	require.Regexp(t, `tables cannot be checked: canceling statement|does not answer within 2s`, body)
}

// Every probe of every load balancer asks: together they would cost the database more
// than the jobs do.
func TestProbesShareACheck(t *testing.T) {
	t.Parallel()
	counter := &checks{}
	pool := pgtest.Connect(t, fixture.Queue(t), func(c *pgxpool.Config) { c.ConnConfig.Tracer = counter })
	r := start(t, pool, quick(service.Config{}))
	require.Eventually(t, func() bool { return counter.n.Load() == 1 }, fixture.Waiting, fixture.Tick, "that of the start")

	var probes sync.WaitGroup
	for range 50 {
		probes.Go(func() { r.get(t, "/readyz") })
	}
	probes.Wait()

	require.EqualValues(t, 2, counter.n.Load())
}

// checks counts how often the set-up is checked.
type checks struct{ n atomic.Int64 }

func (c *checks) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.HasPrefix(data.SQL, "-- verify.settings") {
		c.n.Add(1)
	}
	return ctx
}

func (*checks) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
