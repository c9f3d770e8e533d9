package fleet_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// asked notes when databases are asked, by the bubble's clock.
type asked struct {
	mu    sync.Mutex
	began time.Time
	at    map[string][]time.Duration
}

func newAsked() *asked { return &asked{began: time.Now(), at: map[string][]time.Duration{}} }

// db is the database of a name. It is down, or panics.
func (a *asked) db(name string, panics bool) *down {
	return &down{func(context.Context) (pgx.Tx, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.at[name] = append(a.at[name], time.Since(a.began))
		if panics {
			panic("a fault of the DB's")
		}
		return nil, errDown
	}}
}

// count returns how often a name was asked.
func (a *asked) count(name string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.at[name])
}

// down is a DB whose pointer is its identity.
type down struct{ beginFunc }

// inBubble runs a fleet for a time.
func inBubble(f *fleet.Fleet, cfg reaper.RunConfig, d time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	_ = f.Run(ctx, reapertest.Actor, cfg)
}

// 200 loops that begin at the same moment are 200 connections and polls at once, at each
// deployment.
func TestStartsAreSpreadOverAnInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		note, list := newAsked(), &directory{}
		var members []fleet.Member
		for i := range 200 {
			name := fmt.Sprint(i)
			members = append(members, fleet.Member{Name: name, DB: note.db(name, false)})
		}
		list.set(members...)
		time.AfterFunc(45*time.Second, func() { list.set(append(members, fleet.Member{Name: "late", DB: note.db("late", false)})...) })
		inBubble(newFleet(t, fleet.Config{Members: list.list}), reaper.RunConfig{}, 2*time.Minute)

		for i := range 200 {
			require.Equal(t, time.Duration(i)*150*time.Millisecond, note.at[fmt.Sprint(i)][0])
		}
		require.Equal(t, time.Minute, note.at["late"][0]) // at once, when it is listed
	})
}

// A driver that panics at every call must not be called in a tight loop, nor end the loops of
// the others, nor be given up.
func TestAPanickingMemberIsTriedAgainAfterGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		note, log := newAsked(), &reapertest.Logbook{}
		f := newFleet(t, fleet.Config{Logger: log.Logger(), Members: listOf(
			fleet.Member{Name: "bad", DB: note.db("bad", true)}, fleet.Member{Name: "other", DB: note.db("other", false)},
		)})
		inBubble(f, reaper.RunConfig{}, 2*time.Hour)

		at := note.at["bad"]
		for i, wait := 1, time.Second; i < len(at); i++ {
			require.LessOrEqual(t, at[i]-at[i-1], wait)
			require.GreaterOrEqual(t, at[i]-at[i-1], wait*9/10)
			wait = min(2*wait, 10*time.Minute)
		}
		require.InDelta(t, 22, len(at), 2)
		require.Equal(t, len(at), log.Count("a fault of the DB's"))
		require.Greater(t, len(note.at["other"]), 200)
	})
}

// A connection that hangs, whatever its context says, holds up its own member: the others are
// served and replaced, and the log names it.
func TestAMemberThatHangsStopsNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		note, log, list, until := newAsked(), &reapertest.Logbook{}, &directory{}, make(chan struct{})
		other := fleet.Member{Name: "other", DB: note.db("other", false)}
		list.set(fleet.Member{Name: "stuck", DB: hanging(until)}, other)
		f := newFleet(t, fleet.Config{Members: list.list, Released: list.release, Logger: log.Logger()})
		time.AfterFunc(5*time.Minute, func() {
			list.set(fleet.Member{Name: "stuck", DB: note.db("second", false)}, other)
		})
		time.AfterFunc(15*time.Minute, func() {
			list.set(fleet.Member{Name: "stuck", DB: note.db("third", false)}, other)
		})
		var begun, named int
		var released []string
		time.AfterFunc(20*time.Minute, func() {
			begun, named = note.count("third"), log.Count(`msg="member has not ended" member=stuck`)
			released = list.wasReleased()
			close(until)
		})
		inBubble(f, reaper.RunConfig{}, time.Hour)

		require.Zero(t, begun) // never two loops of one name
		require.Equal(t, 1, named)
		require.Equal(t, []string{"stuck"}, released) // the one that will not be started any more
		require.Empty(t, note.at["second"])
		require.NotEmpty(t, note.at["third"])
		require.Greater(t, len(note.at["other"]), 100)
		require.ElementsMatch(t, []string{"stuck", "stuck", "stuck", "other"}, list.wasReleased())
	})
}

// A tenant is missing from one list, by mistake, while its connection hangs. Its pool is still
// in use, and a caller that closes it would fail the next loop.
func TestAMemberThatIsListedAgainIsNotReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list, until, calls := &directory{}, make(chan struct{}), 0
		member := fleet.Member{Name: "stuck", DB: &down{func(context.Context) (pgx.Tx, error) {
			calls++
			<-until
			return nil, errDown
		}}}
		list.set(member)
		time.AfterFunc(5*time.Minute, func() { list.set() })
		time.AfterFunc(10*time.Minute, func() { list.set(member) })
		time.AfterFunc(15*time.Minute, func() { close(until) })
		released := make(chan []string, 1)
		time.AfterFunc(30*time.Minute, func() { released <- list.wasReleased() })
		inBubble(newFleet(t, fleet.Config{Members: list.list, Released: list.release}), reaper.RunConfig{}, time.Hour)

		require.Empty(t, <-released)
		require.Greater(t, calls, 10)
		require.Equal(t, []string{"stuck"}, list.wasReleased())
	})
}

// A loop that has worked for an hour and then panics is not kept waiting for what happened
// before.
func TestALongLifeForgetsEarlierPanics(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, sinceLast := time.Now(), []time.Duration(nil)
		last := began
		db := &down{func(context.Context) (pgx.Tx, error) {
			sinceLast = append(sinceLast, time.Since(last))
			last = time.Now()
			if at := time.Since(began); at < 5*time.Minute || at > 4*time.Hour {
				panic("a fault of the DB's")
			}
			return nil, errDown
		}}
		f := newFleet(t, fleet.Config{Members: listOf(fleet.Member{Name: "a", DB: db})})
		inBubble(f, reaper.RunConfig{}, 4*time.Hour+time.Minute)

		require.Greater(t, sinceLast[8], time.Minute)
		require.Less(t, sinceLast[len(sinceLast)-3], 10*time.Second)
	})
}

// The directory starts a second later than the service. No tenant waits half a minute for it.
func TestAListThatFailsIsAskedForAgainSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		note, calls := newAsked(), 0
		f := newFleet(t, fleet.Config{Members: func(context.Context) ([]fleet.Member, error) {
			calls++
			if calls < 3 {
				return nil, errDown
			}
			return []fleet.Member{{Name: "a", DB: note.db("a", false)}}, nil
		}})
		inBubble(f, reaper.RunConfig{}, time.Minute)

		require.LessOrEqual(t, note.at["a"][0], 3*time.Second)
		require.Equal(t, 4, calls) // the last one after an Interval
	})
}

// A service that does not stop must say because of which of its 200 databases.
func TestALateMemberIsNamedAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, until := &reapertest.Logbook{}, make(chan struct{})
		f := newFleet(t, fleet.Config{
			Members: listOf(fleet.Member{Name: "stuck", DB: hanging(until)}), Logger: log.Logger(),
		})
		time.AfterFunc(time.Hour, func() { close(until) })
		began := time.Now()
		inBubble(f, reaper.RunConfig{}, time.Minute)

		require.Equal(t, time.Hour, time.Since(began))
		require.Equal(t, 1, log.Count(`msg="member has not ended" member=stuck`))
	})
}
