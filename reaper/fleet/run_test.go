package fleet_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// Each tenant's jobs are recovered, and a metric or a log line without a name would say that
// something is wrong and not where.
func TestRunReapsEachMemberUnderItsName(t *testing.T) {
	t.Parallel()
	log, seen := &reapertest.Logbook{}, &passes{}
	var members []fleet.Member
	for _, name := range []string{"north", "south", "west"} {
		member, pool := openDB(t, name)
		reapertest.Stale(t, pool, name, 3, 0, 5)
		members = append(members, member)
	}
	stop := run(t, newFleet(t, fleet.Config{Members: listOf(members...), Logger: log.Logger()}), reapertest.Quick(seen.add))

	for _, member := range members {
		require.Eventually(t, func() bool {
			reset := 0
			for _, pass := range seen.of(member.Name) {
				reset += pass.Result.ResetCount
			}
			return reset == 3
		}, reapertest.Waiting, reapertest.Tick)
	}
	stop()
	require.Empty(t, seen.of(""))
	require.Equal(t, 3, log.Count("reaped stale leases"))
	for _, member := range members {
		require.Positive(t, log.Count("member="+member.Name))
	}
}

// The server of one tenant goes down. The others' jobs are recovered meanwhile, and its own
// when it is back.
func TestADatabaseThatIsDownStopsNoOther(t *testing.T) {
	t.Parallel()
	up, upPool := openDB(t, "up")
	down, downPool := openDB(t, "down")
	server, seen := admin(t, upPool), &passes{}
	name := downPool.Config().ConnConfig.Database
	run(t, newFleet(t, fleet.Config{Members: listOf(down, up)}), reapertest.Quick(seen.add))
	requireReaped(t, downPool)

	reapertest.Exec(t, server, fmt.Sprintf(`alter database %q allow_connections false`, name))
	reapertest.Exec(t, server, `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1`, name)
	require.Eventually(t, func() bool {
		all := seen.of("down")
		return all[len(all)-1].Err != nil
	}, reapertest.Waiting, reapertest.Tick)
	requireReaped(t, upPool)

	reapertest.Exec(t, server, fmt.Sprintf(`alter database %q allow_connections true`, name))
	requireReaped(t, downPool)
}

// A tenant is added, another is removed: the one is served without a restart of the service,
// and nothing touches the other's database after its pool was closed.
func TestMembersComeAndGo(t *testing.T) {
	t.Parallel()
	first, firstPool := openDB(t, "first")
	second, secondPool := openDB(t, "second")
	log, list, seen := &reapertest.Logbook{}, &directory{}, &passes{}
	list.set(first)
	f := newFleet(t, fleet.Config{Members: list.list, Released: list.release, Logger: log.Logger()})
	stop := run(t, f, reapertest.Quick(seen.add))
	requireReaped(t, firstPool)

	list.set(second)
	requireReaped(t, secondPool)
	require.Eventually(t, func() bool { return len(list.wasReleased()) == 1 }, reapertest.Waiting, reapertest.Tick)
	before := len(seen.of("first"))
	seen.more(t, "second", 3)
	require.Len(t, seen.of("first"), before)

	list.set(first, second)
	requireReaped(t, firstPool)
	stop()
	require.ElementsMatch(t, []string{"first", "first", "second"}, list.wasReleased())
	require.Equal(t, 3, log.Count("members changed"))
	require.Equal(t, 1, log.Count("members=1 added=1 replaced=0 gone=1"))
}

// A tenant moves to another server: its name has a new pool. Two loops of one name would
// count it twice, and a pool that is closed too early fails the last pass.
func TestAMemberWithANewDBIsReplaced(t *testing.T) {
	t.Parallel()
	old, oldPool := openDB(t, "tenant")
	moved, movedPool := openDB(t, "tenant")
	list := &directory{}
	list.set(old)
	released := make(chan fleet.Member, 2)
	f := newFleet(t, fleet.Config{Members: list.list, Released: func(m fleet.Member) {
		// The next loop has not begun: it would have reaped this job.
		require.Zero(t, reapertest.States(t, movedPool)["retry_waiting"])
		released <- m
	}})
	stop := run(t, f, reapertest.Quick(nil))
	requireReaped(t, oldPool)

	reapertest.Stale(t, movedPool, "kind", 1, 0, 5)
	list.set(moved)
	require.Equal(t, old, <-released)
	require.Eventually(t, func() bool {
		return reapertest.States(t, movedPool)["retry_waiting"] == 1
	}, reapertest.Waiting, reapertest.Tick)
	reapertest.Exec(t, movedPool, `truncate job_queue`)
	stop()
	require.Equal(t, moved, <-released)
	require.Empty(t, released)
}

// The directory of tenants is down, or returns nonsense. The tenants that are known are
// served as before, and the log says it once.
func TestAFaultyListKeepsTheLastOne(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	for name, fault := range map[string]func(*directory){
		"an error": func(d *directory) { d.fail(errors.New("directory down")) },
		"a name that is there twice": func(d *directory) {
			d.set(member, fleet.Member{Name: "new"}, fleet.Member{Name: "new"})
		},
	} {
		log, list, seen := &reapertest.Logbook{}, &directory{}, &passes{}
		list.set(member)
		stop := run(t, newFleet(t, fleet.Config{
			Members: list.list, Released: list.release, Logger: log.Logger(),
		}), reapertest.Quick(seen.add))
		requireReaped(t, pool)

		fault(list)
		list.listed(t, 3)
		requireReaped(t, pool)
		require.Empty(t, list.wasReleased(), name)
		list.set(member)
		list.listed(t, 2)
		stop()
		require.Equal(t, 1, log.Count("members not listed"), name)
		require.Equal(t, 1, log.Count("members listed again"), name)
		require.Equal(t, []string{"tenant"}, list.wasReleased(), name)
	}
}

// A bug in the code that lists tenants or closes their pools must not end what recovers all
// jobs.
func TestAPanicOfMembersOrReleasedIsLogged(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	log, list := &reapertest.Logbook{}, &directory{}
	list.set(member)
	calls := 0
	f := newFleet(t, fleet.Config{
		Members: func(ctx context.Context) ([]fleet.Member, error) {
			calls++
			if calls == 1 {
				panic("no directory")
			}
			return list.list(ctx)
		},
		Released: func(fleet.Member) { panic("closed twice") },
		Logger:   log.Logger(),
	})
	stop := run(t, f, reapertest.Quick(nil))
	requireReaped(t, pool)
	stop()
	require.Equal(t, 1, log.Count("no directory"))
	require.Equal(t, 1, log.Count(`msg="released panicked" member=tenant err="closed twice"`))
}

// A tenant with an invalid mapping is one line in the log, not one for each try, and works as
// soon as its configuration does.
func TestAnInvalidMemberIsLoggedOnce(t *testing.T) {
	t.Parallel()
	good, goodPool := openDB(t, "good")
	bad, badPool := openDB(t, "bad")
	invalid := bad
	invalid.Config.Grace = -1
	log, list, seen := &reapertest.Logbook{}, &directory{}, &passes{}
	list.set(invalid, fleet.Member{DB: badPool}, fleet.Member{Name: "no pool"}, good)
	run(t, newFleet(t, fleet.Config{Members: list.list, Logger: log.Logger()}), reapertest.Quick(seen.add))

	requireReaped(t, goodPool)
	list.listed(t, 5)
	require.Equal(t, 3, log.Count("member failed"))
	require.Equal(t, 1, log.Count("reaper: negative setting"))
	require.Equal(t, 1, log.Count(fleet.ErrMemberName.Error()))
	list.set(bad, good)
	requireReaped(t, badPool)
}

// A service that stops must not leave a loop that writes to a database whose pool is being
// closed.
func TestRunWaitsForItsMembers(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	inside, goOn := make(chan struct{}), make(chan struct{})
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	list := &directory{}
	list.set(member)
	f := newFleet(t, fleet.Config{Members: list.list, Released: list.release})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- f.Run(ctx, reapertest.Actor, reapertest.Quick(func(context.Context, reaper.Pass) {
			inside <- struct{}{}
			<-goOn
		}))
	}()
	<-inside
	cancel(reapertest.ErrEnd)
	require.Never(t, func() bool { return len(ended) > 0 }, 50*time.Millisecond, reapertest.Tick)
	require.Empty(t, list.wasReleased())
	close(goOn)
	require.ErrorIs(t, <-ended, reapertest.ErrEnd)
	require.Equal(t, []string{"tenant"}, list.wasReleased())
}

// A pool that is not open, because its database is not there yet, is a member as any other.
func TestAMemberMayComeBeforeItsTables(t *testing.T) {
	t.Parallel()
	pool := pgtest.Empty(t)
	seen := &passes{}
	run(t, newFleet(t, fleet.Config{Members: listOf(fleet.Member{Name: "new", DB: pool})}), reapertest.Quick(seen.add))
	seen.more(t, "new", 2)
	require.Error(t, seen.of("new")[0].Err)
	reapertest.Exec(t, pool, reaper.Schema)
	reapertest.OpenGates(t, pool)
	requireReaped(t, pool)
}
