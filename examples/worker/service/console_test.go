package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// Whoever reaches the metrics must not reach a page that nobody asked for.
func TestThereIsNoConsoleUnlessAskedFor(t *testing.T) {
	t.Parallel()
	status, _ := start(t, fixture.Queue(t), quick(service.Config{})).get(t, "/console/")
	require.Equal(t, 404, status)
}

// The console is there to see what the reaper does: that of this process, and that of all
// by the audit table. Without somebody who says who asks, nobody may act.
func TestTheConsoleShowsWhatTheReaperDid(t *testing.T) {
	t.Parallel()
	pool := fixture.Queue(t)
	fixture.Exec(t, pool, service.AuditSchema)
	fixture.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('walk_the_dog', 'leased', 'dead', now() - interval '1 minute')`)
	cfg := quick(service.Config{
		Name:    "shop",
		Console: pgtest.Connect(t, pool, func(*pgxpool.Config) {}),
		History: console.Audit{},
		Reaper:  reaper.Config{OnApply: console.Audit{}.Write},
	})
	cfg.Loop.Interval = time.Minute // the console keeps the last passes alone
	r := start(t, pool, cfg)
	fixture.Eventually(t, pool, `select count(*) > 0 from reaper_audit`)

	require.Eventually(t, func() bool {
		_, body := r.get(t, "/console/queue/overview.json")
		return strings.Contains(body, `"reset_count": 1`)
	}, fixture.Waiting, 50*fixture.Tick, "the last passes")
	_, body := r.get(t, "/console/queue/history")
	require.Contains(t, body, "shop")
	require.Equal(t, 403, r.post(t, "/console/queue/gates/close"))
	require.Equal(t, 4, fixture.One[int](t, pool, `select count(*) from queue_config`))
}

// post sends an empty form.
func (r *running) post(t *testing.T, path string) (status int) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+r.addr+path, http.NoBody)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode
}
