package citus_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

// When an apply is made while a shard moves.
const (
	afterTheCopy   = "after the rows were copied"
	afterTheMove   = "after the move"
	acrossTheMove  = "it begins after the copy and waits for the move"
	beforeTheMove  = "before the move"
	lockTimeout    = 20 * time.Millisecond
	lockNotWaited  = "55P03"
	staleInTheTest = 10
)

// An apply is confirmed, and the jobs are stale again where the shard is now: they are reaped
// a second time, and jobs whose dead letters were seen have none. The same schedules without the
// guard, on the node's pool, show that.
func TestAMoveLosesNoConfirmedApply(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		when     string
		timeout  time.Duration // of the wait for the move
		guarded  bool
		moved    bool   // the apply fails with ErrMoved
		sqlState string // the apply fails with it
		lost     bool   // the apply is confirmed, and is not where the shard is
	}{
		"before the move":                    {when: beforeTheMove, guarded: true},
		"after the copy":                     {when: afterTheCopy, guarded: true, timeout: lockTimeout, sqlState: lockNotWaited},
		"across the move":                    {when: acrossTheMove, guarded: true, timeout: time.Minute, moved: true},
		"after the move":                     {when: afterTheMove, guarded: true, moved: true},
		"before the move, without the guard": {when: beforeTheMove},
		"after the copy, without the guard":  {when: afterTheCopy, lost: true},
		"after the move, without the guard":  {when: afterTheMove, lost: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t)
			c.stale(t, 0, staleInTheTest)
			m := list(t, c.shards(t, citus.Config{Reaper: reaper.Config{LockTimeout: test.timeout}}))[0]
			db := m.DB
			if !test.guarded {
				db = c.on(t, 0)
			}
			r := reapertest.New(t, db, m.Config)

			result, err := c.applyDuringMove(t, r, test.when)

			switch {
			case test.moved:
				require.ErrorIs(t, err, citus.ErrMoved)
				require.Zero(t, c.reaped(t, 0))
			case test.sqlState != "":
				var pgErr *pgconn.PgError
				require.ErrorAs(t, err, &pgErr)
				require.Equal(t, test.sqlState, pgErr.Code)
				require.Zero(t, c.reaped(t, 0))
			default:
				require.NoError(t, err)
				require.Len(t, result.Actions, staleInTheTest)
				require.Equal(t, test.lost, c.reaped(t, 0) == 0)
			}
		})
	}
}

// applyDuringMove makes an apply on the first shard at a point of its move.
func (c *cluster) applyDuringMove(t *testing.T, r *reaper.Reaper, when string) (result *reaper.ApplyResult, err error) {
	t.Helper()
	apply := func() { result, err = r.Apply(t.Context(), reapertest.Actor, 2*staleInTheTest) }
	if when == beforeTheMove {
		apply()
	}
	node := c.on(t, 0)
	m := c.begin(t, 0)
	m.copy(t)
	applied := make(chan struct{})
	switch when {
	case afterTheCopy:
		apply()
	case acrossTheMove:
		go func() {
			defer close(applied)
			apply()
		}()
		reapertest.WaitForLock(t, node, `-- citus.guard%`)
	}
	m.commit(t)
	switch when {
	case acrossTheMove:
		<-applied
	case afterTheMove:
		apply()
	}
	return result, err
}

// A redrive or a purge of a shard that has moved is lost as an apply is. So is a write of the
// caller's own through the member.
func TestEveryWriteThroughAMemberIsGuarded(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.stale(t, 0, staleInTheTest)
	m := list(t, c.shards(t, citus.Config{}))[0]
	reapertest.Apply(t, reapertest.New(t, m.DB, m.Config), 2*staleInTheTest)
	store := storeOf(t, m)
	c.move(t, 0)

	writes := map[string]func(ctx context.Context) error{
		"redrive": func(ctx context.Context) error {
			_, err := deadletter.Redrive(ctx, m.DB, store, reapertest.Actor, deadletter.Filter{}, 10)
			return err
		},
		"purge": func(ctx context.Context) error {
			_, err := deadletter.Purge(ctx, m.DB, store, 0, deadletter.PurgeConfig{Unredriven: true})
			return err
		},
		"a transaction": func(ctx context.Context) error {
			_, err := m.DB.Begin(ctx)
			return err
		},
		"rehearse": func(ctx context.Context) error {
			_, err := reapertest.New(t, m.DB, m.Config).Rehearse(ctx)
			return err
		},
	}
	for name, write := range writes {
		require.ErrorIs(t, write(t.Context()), citus.ErrMoved, name)
	}
	_, err := deadletter.List(t.Context(), m.DB, store, deadletter.Filter{}, 10)
	require.NoError(t, err)
}

// The guard would cost a round trip for each apply, on a link where that is most of the time.
func TestTheGuardTravelsWithTheClaim(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	recorder := &reapertest.Recorder{}
	m := list(t, c.shards(t, citus.Config{Node: func(config *pgxpool.Config) {
		config.ConnConfig.Tracer, config.ShouldPing, config.MaxConns = recorder, reapertest.NoPing, 1
	}}))[0]
	r := reapertest.New(t, m.DB, m.Config)
	c.stale(t, 0, 30)
	reapertest.Apply(t, r, 10) // prepares the statements

	exchanges, statements := recorder.Count(), len(recorder.Statements())
	reapertest.Apply(t, r, 10)

	require.Equal(t, 2, recorder.Count()-exchanges)
	var order []string
	for _, sent := range recorder.Statements()[statements:] {
		order = append(order, sent.Name())
	}
	require.Equal(t, []string{"reaper.settings", "citus.guard", "gates.read", "reaper.claim"},
		slices.DeleteFunc(order, func(name string) bool { return name == "" })[:4])
}

// A commit that is not on the source's disk yet may be missing from the copy of a shard. An
// operator's stricter setting stays.
func TestTheGuardHasCommitsFlushed(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	for session, want := range map[string]string{"off": "on", "local": "on", "remote_apply": "remote_apply"} {
		var got string
		cfg := citus.Config{
			Reaper: reaper.Config{OnApply: func(_ context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
				got = reapertest.One[string](t, tx, `show synchronous_commit`)
				return nil
			}},
			Node: func(config *pgxpool.Config) { config.ConnConfig.RuntimeParams["synchronous_commit"] = session },
		}
		m := list(t, c.shards(t, cfg))[0]
		c.stale(t, 0, 1)

		reapertest.Apply(t, reapertest.New(t, m.DB, m.Config), 10)

		require.Equal(t, want, got, session)
	}
}

// At a stricter level the second check reads what was true before the wait for the move.
func TestTheGuardNeedsReadCommitted(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := list(t, c.shards(t, citus.Config{}))[0]
	strict, ok := m.DB.(interface {
		BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
	})
	require.True(t, ok)

	_, err := strict.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})

	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "25000", pgErr.Code)
}

// Citus lets only an owner lock the metadata of a shard. A reaper whose role owns the queue
// could drop it.
func TestTheReaperNeedsNoMoreThanTheGuardsExecute(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	name := reapertest.One[string](t, c.coordinator, `select 'login_' || md5(current_database())`)
	reapertest.Exec(t, c.coordinator, `create role `+name+` login`)
	node := c.on(t, 0)
	t.Cleanup(func() { reapertest.DropRole(t, node, name) })
	shards := c.shards(t, citus.Config{Node: func(config *pgxpool.Config) { config.ConnConfig.User = name }})
	m := list(t, shards)[0]
	r := reapertest.New(t, m.DB, m.Config)
	c.stale(t, 0, staleInTheTest)
	reapertest.Exec(t, node, `grant select, update on `+queueOf(0)+` to `+name)
	reapertest.Exec(t, node, `grant select, insert on `+lettersOf(0)+` to `+name)
	reapertest.Exec(t, node, `grant select, update (updated_at) on `+settings+` to `+name)

	_, err := r.Apply(t.Context(), reapertest.Actor, 10)
	var pgErr *pgconn.PgError
	require.ErrorAs(t, err, &pgErr)
	require.Equal(t, "42501", pgErr.Code)

	reapertest.Exec(t, node, `grant execute on function leasereaper_guard(bigint[]) to `+name)
	require.Len(t, reapertest.Apply(t, r, 10).Actions, staleInTheTest)
}
