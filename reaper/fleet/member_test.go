package fleet_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// memo is a source with a map of its own.
type memo struct{ cache map[string]string }

func (memo) Read(context.Context, pgx.Tx, []string) (gates.Values, error) { return nil, errDown }

// rebuilt makes a Config with everything in it, as a Members does that makes all things anew
// at each call.
func rebuilt(tenant string) reaper.Config {
	return reaper.Config{
		Queue: reaper.Table{
			Name:    pgx.Identifier{"tenant", "job_queue"},
			OnReset: reaper.Set{"progress": nil, "touched": reaper.Now},
		},
		Gates: gates.SourceFunc(func(context.Context, pgx.Tx, []string) (gates.Values, error) {
			return gates.Values{"tenant": tenant}, nil
		}),
		DeadLetter:  deadletter.Table{Name: pgx.Identifier{"tenant", "letters"}},
		Backoff:     backoff.Exponential{Jitter: 0.5},
		KindBackoff: map[string]backoff.Policy{"slow": backoff.PolicyFunc(func(attempts int, _ int64) int64 { return int64(attempts + len(tenant)) })},
		KindGrace:   map[string]time.Duration{"slow": time.Minute},
		Kinds:       []string{"slow", "fast"},
		OnApply:     func(context.Context, pgx.Tx, *reaper.ApplyResult) error { return fmt.Errorf("in %s", tenant) },
		Logger:      slog.New(slog.DiscardHandler),
	}
}

// changed is what a caller may change in a Config.
var changed = map[string]func(*reaper.Config){
	"a limit":                 func(c *reaper.Config) { c.MaxStale = 1 },
	"a name in the mapping":   func(c *reaper.Config) { c.Queue.Name = pgx.Identifier{"tenant", "jobs"} },
	"a value in the mapping":  func(c *reaper.Config) { c.Queue.OnReset = reaper.Set{"progress": 0, "touched": reaper.Now} },
	"a column in the mapping": func(c *reaper.Config) { c.Queue.OnReset = reaper.Set{"percent": nil, "touched": reaper.Now} },
	"no columns any more":     func(c *reaper.Config) { c.Queue.OnReset = nil },
	"another source":          func(c *reaper.Config) { c.Gates = gates.Table{} },
	"another function as source": func(c *reaper.Config) {
		c.Gates = gates.SourceFunc(func(context.Context, pgx.Tx, []string) (gates.Values, error) { return nil, nil })
	},
	"a source with a map":          func(c *reaper.Config) { c.Gates = memo{map[string]string{}} },
	"no source any more":           func(c *reaper.Config) { c.Gates = nil },
	"another table of letters":     func(c *reaper.Config) { c.DeadLetter = deadletter.Table{Name: pgx.Identifier{"tenant", "dead"}} },
	"a factor of the backoff":      func(c *reaper.Config) { c.Backoff = backoff.Exponential{Jitter: 0.25} },
	"a policy of one kind":         func(c *reaper.Config) { c.KindBackoff = map[string]backoff.Policy{"slow": backoff.Exponential{}} },
	"another kind":                 func(c *reaper.Config) { c.KindGrace = map[string]time.Duration{"fast": time.Minute} },
	"fewer kinds":                  func(c *reaper.Config) { c.Kinds = []string{"slow"} },
	"an empty list, which is none": func(c *reaper.Config) { c.ExceptKinds = []string{} },
	"no hook any more":             func(c *reaper.Config) { c.OnApply = nil },
	"another hook":                 func(c *reaper.Config) { c.OnApply = reapertest.NoHook },
}

// A Members that makes its Configs anew at each call must not restart 200 loops every
// Interval, and a change of any setting must restart the one that it is for.
func TestAConfigIsNewIfItsDataIs(t *testing.T) {
	t.Parallel()
	db := &down{}
	member := fleet.Member{Name: "tenant", DB: db, Config: rebuilt("tenant")}

	require.True(t, fleet.Same(member, fleet.Member{Name: "tenant", DB: db, Config: rebuilt("tenant")}))
	require.False(t, fleet.Same(member, fleet.Member{Name: "tenant", DB: &down{}, Config: rebuilt("tenant")}))
	for name, change := range changed {
		other := fleet.Member{Name: "tenant", DB: db, Config: rebuilt("tenant")}
		change(&other.Config)
		require.False(t, fleet.Same(member, other), name)
		require.False(t, fleet.Same(other, member), name)
	}
	memos := [2]fleet.Member{member, member}
	for i := range memos { // its loop may write to it, so it is not read
		memos[i].Config.Gates = memo{map[string]string{"a": "b"}}
	}
	require.True(t, fleet.Same(memos[0], memos[0]))
	require.False(t, fleet.Same(memos[0], memos[1]))
	member.Config.Gates = memo{}
	require.True(t, fleet.Same(member, member))
	member.DB = struct{ beginFunc }{}
	require.True(t, fleet.Same(member, member)) // a DB that == cannot compare
}

// The same through a Run: a loop that is restarted each Interval polls anew and forgets its
// rejected jobs.
func TestClosuresThatAreMadeAnewRestartNothing(t *testing.T) {
	t.Parallel()
	member, _ := openDB(t, "tenant")
	list, seen := &directory{}, &passes{}
	f := newFleet(t, fleet.Config{Released: list.release, Members: func(ctx context.Context) ([]fleet.Member, error) {
		member.Config.OnApply = func(context.Context, pgx.Tx, *reaper.ApplyResult) error { return ctx.Err() }
		member.Config.Logger = slog.New(slog.DiscardHandler)
		list.set(member)
		return list.list(ctx)
	}})
	run(t, f, reapertest.Quick(seen.add))
	seen.more(t, "tenant", 1)
	list.listed(t, 5)
	require.Empty(t, list.wasReleased())

}
