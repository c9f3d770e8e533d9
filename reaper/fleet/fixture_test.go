package fleet_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// errDown is the error of a database that does not answer.
var errDown = errors.New("the server is down")

// directory is a list of members that a test changes while a fleet runs.
type directory struct {
	mu       sync.Mutex
	members  []fleet.Member
	err      error
	calls    int
	released []fleet.Member
}

// set replaces the list.
func (d *directory) set(members ...fleet.Member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.members, d.err = members, nil
}

// fail makes each further call return an error.
func (d *directory) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

func (d *directory) list(context.Context) ([]fleet.Member, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return slices.Clone(d.members), d.err
}

func (d *directory) release(m fleet.Member) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.released = append(d.released, m)
}

// wasReleased returns the names of the members that were released.
func (d *directory) wasReleased() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := make([]string, len(d.released))
	for i, m := range d.released {
		names[i] = m.Name
	}
	return names
}

// listed returns when the list was asked for n more times.
func (d *directory) listed(t *testing.T, n int) {
	t.Helper()
	calls := func() int {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.calls
	}
	before := calls()
	require.Eventually(t, func() bool { return calls() >= before+n }, reapertest.Waiting, reapertest.Tick)
}

// listOf always lists the same members.
func listOf(members ...fleet.Member) func(context.Context) ([]fleet.Member, error) {
	return func(context.Context) ([]fleet.Member, error) { return members, nil }
}

// newFleet makes a Fleet.
func newFleet(t testing.TB, cfg fleet.Config) *fleet.Fleet {
	t.Helper()
	f, err := fleet.New(cfg)
	require.NoError(t, err)
	return f
}

// run runs a fleet until stop is called or the test ends.
func run(t testing.TB, f *fleet.Fleet, cfg reaper.RunConfig) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx, reapertest.Actor, cfg) }()
	stop = sync.OnceFunc(func() {
		cancel(reapertest.ErrEnd)
		require.ErrorIs(t, <-ended, reapertest.ErrEnd)
	})
	t.Cleanup(stop)
	return stop
}

// passes collects the passes of a fleet.
type passes struct {
	mu  sync.Mutex
	all []reaper.Pass
}

func (p *passes) add(_ context.Context, pass reaper.Pass) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, pass)
}

// of returns the passes of a member.
func (p *passes) of(member string) []reaper.Pass {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.all), func(pass reaper.Pass) bool { return pass.Member != member })
}

// more returns when a member has made n more passes.
func (p *passes) more(t *testing.T, member string, n int) {
	t.Helper()
	before := len(p.of(member))
	require.Eventually(t, func() bool { return len(p.of(member)) >= before+n }, reapertest.Waiting, reapertest.Tick)
}

// openDB is a member's database, with open gates.
func openDB(t testing.TB, name string) (fleet.Member, *pgxpool.Pool) {
	t.Helper()
	pool := reapertest.OpenQueue(t)
	return fleet.Member{Name: name, DB: pool}, pool
}

// requireReaped returns when a job that is stale now was reset.
func requireReaped(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	before := reapertest.States(t, pool)["retry_waiting"]
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	require.Eventually(t, func() bool {
		return reapertest.States(t, pool)["retry_waiting"] == before+1
	}, reapertest.Waiting, reapertest.Tick)
}

// admin returns a pool on another database of the same server.
func admin(t *testing.T, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	return pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.Database = "postgres" })
}

// beginFunc is a DB.
type beginFunc func(ctx context.Context) (pgx.Tx, error)

func (f beginFunc) Begin(ctx context.Context) (pgx.Tx, error) { return f(ctx) }

// hanging is a DB that answers only when the channel is closed, whatever its context says.
func hanging(until <-chan struct{}) reaper.DB {
	return &struct{ beginFunc }{func(context.Context) (pgx.Tx, error) {
		<-until
		return nil, errDown
	}}
}
