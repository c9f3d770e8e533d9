package fleet_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// requireClosed requires that an apply is refused because of the closed gate.
func requireClosed(t *testing.T, db reaper.DB, cfg reaper.Config) {
	t.Helper()
	result, err := reapertest.New(t, db, cfg).Apply(t.Context(), reapertest.Actor, 1)
	require.NoError(t, err)
	require.Equal(t, gates.ReaperEnabled+"=false", result.Reason)
}

// Everything must stop now. The members that can be reached are closed, and the operator
// learns the names of the others.
func TestCloseGatesNamesWhatItDidNotClose(t *testing.T) {
	t.Parallel()
	open, openPool := openDB(t, "open")
	other, otherPool := openDB(t, "other")
	reapertest.Exec(t, otherPool, `alter table queue_config rename to settings`)
	other.Config.Gates = gates.Table{Name: pgx.Identifier{"settings"}}
	static, staticPool := openDB(t, "static")
	static.Config.Gates = reapertest.OpenGate
	away := &down{func(context.Context) (pgx.Tx, error) { return nil, errDown }}
	f := newFleet(t, fleet.Config{Members: listOf(
		fleet.Member{Name: "away", DB: away}, open, static, fleet.Member{Name: "no pool", DB: (*pgxpool.Pool)(nil)}, other,
	)})

	outcomes, err := f.CloseGates(t.Context(), "operator")
	var notClosed *fleet.NotClosedError
	require.ErrorAs(t, err, &notClosed)
	require.Equal(t, []string{"away", "static", "no pool"}, notClosed.Members)
	require.EqualError(t, err, `fleet: the gates of these members were not closed: "away", "static", "no pool"`)
	require.ErrorIs(t, outcomes[0].Err, errDown)
	require.ErrorIs(t, outcomes[2].Err, fleet.ErrGateSource)
	require.Error(t, outcomes[3].Err)
	require.JSONEq(t, `{"member":"open","result":{}}`, reapertest.JSON(t, outcomes[1]))
	require.Nil(t, outcomes[2].Result)

	requireClosed(t, openPool, open.Config)
	requireClosed(t, otherPool, other.Config)
	require.Equal(t, "operator", reapertest.One[string](t, openPool, `select updated_by from queue_config where key = $1`, gates.ReaperEnabled))
	require.Equal(t, "true", reapertest.One[string](t, staticPool, `select value from queue_config where key = $1`, gates.ReaperEnabled))
}

// The jobs that must stop hold every connection of the pool.
func TestCloseGatesOfAMemberWhosePoolIsExhausted(t *testing.T) {
	t.Parallel()
	_, pool := openDB(t, "tenant")
	var conns []*pgx.Conn
	full := pgtest.Connect(t, pool, func(c *pgxpool.Config) {
		c.MaxConns = 1
		c.ConnConfig.RuntimeParams["search_path"] = "nowhere"
		c.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			c.RuntimeParams["application_name"] = "member"
			return nil
		}
		c.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
			conns = append(conns, conn)
			_, err := conn.Exec(ctx, `select set_config('search_path', 'public', false) where current_setting('application_name') = 'member'`)
			return err
		}
	})
	held, err := full.Acquire(t.Context())
	require.NoError(t, err)
	defer held.Release()

	f := newFleet(t, fleet.Config{Members: listOf(fleet.Member{Name: "tenant", DB: full})})
	_, err = f.CloseGates(t.Context(), "operator")
	require.NoError(t, err)
	requireClosed(t, pool, reaper.Config{})
	require.Len(t, conns, 2)
	require.True(t, conns[1].IsClosed())
}

// Half of the servers are dead. The emergency stop must not wait for them one after the other,
// behind the living.
func TestCloseGatesWaitsFiveSecondsForAllAtOnce(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ deadline, wanted time.Duration }{
		"no deadline":      {time.Hour, 5 * time.Second},
		"a shorter one":    {time.Second, time.Second},
		"none is left now": {0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			dead := &down{func(ctx context.Context) (pgx.Tx, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}}
			var members []fleet.Member
			for i := range 100 {
				members = append(members, fleet.Member{Name: fmt.Sprint(i), DB: dead})
			}
			ctx, cancel := context.WithTimeout(t.Context(), test.deadline)
			defer cancel()
			began := time.Now()
			outcomes, err := newFleet(t, fleet.Config{Members: listOf(members...)}).CloseGates(ctx, "operator")
			require.Equal(t, test.wanted, time.Since(began), name)
			require.Len(t, outcomes, 100, name)
			var notClosed *fleet.NotClosedError
			require.ErrorAs(t, err, &notClosed, name)
			require.Len(t, notClosed.Members, 100, name)
		})
	}
}

// A long transaction reads the settings, so the gate cannot be closed yet. That is said.
func TestCloseGatesOfASettingThatIsLocked(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	reapertest.Exec(t, reapertest.Begin(t, pool), `lock table queue_config in share mode`)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := newFleet(t, fleet.Config{Members: listOf(member)}).CloseGates(ctx, "operator")
	var notClosed *fleet.NotClosedError
	require.ErrorAs(t, err, &notClosed)
	require.Equal(t, []string{"tenant"}, notClosed.Members)
}

// The directory of tenants is down with everything else. The tenants that are known are closed
// all the same, and the operator hears that there may be more.
func TestCloseGatesOfTheLastListWhenMembersFails(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	list := &directory{}
	list.set(member)
	f := newFleet(t, fleet.Config{Members: list.list})
	_, err := f.DryRun(t.Context(), 1)
	require.NoError(t, err)
	list.fail(errDown)

	outcomes, err := f.CloseGates(t.Context(), "operator")
	require.ErrorIs(t, err, errDown)
	require.Len(t, outcomes, 1)
	require.NoError(t, outcomes[0].Err)
	requireClosed(t, pool, reaper.Config{})
}

// An actor that is empty would leave nobody to ask who has stopped everything.
func TestCloseGatesNeedsAnActor(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	outcomes, err := newFleet(t, fleet.Config{Members: listOf(member)}).CloseGates(t.Context(), " ")
	require.Error(t, err)
	require.ErrorIs(t, outcomes[0].Err, gates.ErrActor)
	reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 1) // the gate is open
}
