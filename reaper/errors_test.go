package reaper_test

import (
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtext"
	"github.com/lease-governance/leasereaper/reaper"
)

// A service that was wired up wrongly must hear so at its start.
func TestNewRefusesANilDB(t *testing.T) {
	t.Parallel()

	for name, db := range map[string]reaper.DB{
		"nil": nil, "a nil pool": (*pgxpool.Pool)(nil), "a nil connection": (*pgx.Conn)(nil),
	} {
		_, err := reaper.New(db, reaper.Config{})
		require.ErrorIs(t, err, reaper.ErrNilDB, name)
	}
}

// Whoever mends one fault of a configuration and finds the next one at the next
// start was served badly.
func TestNewReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()

	_, err := reaper.New(nil, reaper.Config{
		Queue: reaper.Table{
			Name:    pgx.Identifier{"a", "b", "c"},
			Columns: reaper.Columns{JobID: "a\x00b", LeaseUntil: string(make([]byte, 64))},
			States:  reaper.States{Leased: "\xff"},
		},
		Gates:      gates.Table{Name: pgx.Identifier{""}},
		DeadLetter: deadletter.Table{Name: pgx.Identifier{"x", "y", "z"}},
		Backoff:    backoff.Exponential{Jitter: 1.5},
		Grace:      -1,
		MaxStale:   -1,
		CountUpTo:  -1,
	})

	require.ErrorIs(t, err, reaper.ErrNilDB)
	require.ErrorIs(t, err, pgtext.ErrName)
	require.ErrorIs(t, err, reaper.ErrNegative)
	require.Len(t, reapertest.Flatten(err), 11)
}

// A function that was never set must be met at the start, not by the first job.
func TestNewRefusesNilFunctions(t *testing.T) {
	t.Parallel()

	_, err := reaper.New(pgtest.New(t), reaper.Config{
		Gates: gates.SourceFunc(nil), DeadLetter: deadletter.MoverFunc(nil), Backoff: backoff.PolicyFunc(nil),
	})

	require.Len(t, reapertest.Flatten(err), 3)
}

// A retry state that is the leased one would leave every reset job leased with no
// end, never to be found again.
func TestNewRefusesOneNameForTwoThings(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	_, err := reaper.New(pool, reaper.Config{Queue: reaper.Table{
		Columns: reaper.Columns{LastError: "lease_owner", JobKind: reaper.None},
		States:  reaper.States{RetryWaiting: "leased", DeadLetter: "leased"},
	}})

	require.ErrorIs(t, err, reaper.ErrDuplicateName)
	require.Len(t, reapertest.Flatten(err), 3)
	_, err = reaper.New(pool, reaper.Config{Queue: reaper.Table{
		Columns: reaper.Columns{LastError: reaper.None, JobKind: reaper.None},
	}})
	require.NoError(t, err)
}

// A timestamp without a zone is read in the session's zone: ten minutes from now
// in Tokyo's clock is hours ago, and the job is running.
func TestALeaseEndWithoutAZoneIsAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue alter lease_until type timestamp`)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until)
		values ('k', 'leased', now() at time zone 'UTC' + interval '10 minutes')`)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeSimpleProtocol} {
		tokyo := pgtest.Connect(t, pool, func(c *pgxpool.Config) {
			c.ConnConfig.RuntimeParams["timezone"] = "Asia/Tokyo"
			c.ConnConfig.DefaultQueryExecMode = mode
		})
		r := reapertest.New(t, tokyo, reaper.Config{})

		_, err := r.DryRun(t.Context(), 10)
		require.ErrorIs(t, err, reaper.ErrLeaseType)
		_, err = r.Apply(t.Context(), reapertest.Actor, 10)
		require.ErrorIs(t, err, reaper.ErrLeaseType)
		require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
	}
}

// A limit of 0 from a missing configuration value must not mean all or nothing.
func TestALimitBelowOneIsAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "kind", 1, 0, 5)
	r := reapertest.New(t, pool, reaper.Config{})

	for _, limit := range []int{0, -1} {
		_, err := r.Apply(t.Context(), reapertest.Actor, limit)
		require.ErrorIs(t, err, reaper.ErrLimit)
		_, err = r.DryRun(t.Context(), limit)
		require.ErrorIs(t, err, reaper.ErrLimit)
	}
	require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
}

// An actor that cannot be stored must fail before the batch, not in it.
func TestAnActorThatIsNotTextIsAnError(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	r := reapertest.New(t, pool, reaper.Config{})

	for _, actor := range []string{"a\x00b", "\xff"} {
		_, err := r.Apply(t.Context(), actor, 1)
		require.ErrorIs(t, err, reaper.ErrActor)
	}
}

// A typo in a setting must never open a gate, and must say where it is.
func TestASettingThatDoesNotParseIsAnError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ key, value string }{
		"a gate that is no boolean":  {gates.ReaperEnabled, "treu"},
		"a gate that is empty":       {gates.SubstrateEnabled, ""},
		"a gate that is a long s":    {gates.SubstrateEnabled, "yeſ"},
		"a third gate that is null":  {gates.DryRunOnly, "null"},
		"a base that is empty":       {gates.BackoffBaseSec, ""},
		"a base that is negative":    {gates.BackoffBaseSec, "-1"},
		"a base that is a fraction":  {gates.BackoffBaseSec, "1.5"},
		"a base that is a second":    {gates.BackoffBaseSec, "10s"},
		"a base above ten years":     {gates.BackoffBaseSec, "315360001"},
		"a base beyond every number": {gates.BackoffBaseSec, "99999999999999999999"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "kind", 1, 0, 5)
			reapertest.Exec(t, pool, `insert into queue_config (key, value) values ($1, $2)
				on conflict (key) do update set value = excluded.value`, test.key, test.value)

			result, err := reapertest.New(t, pool, reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)

			require.Nil(t, result)
			var valueErr *gates.ValueError
			require.ErrorAs(t, err, &valueErr)
			require.Equal(t, test.key, valueErr.Key)
			require.Equal(t, test.value, valueErr.Value)
			require.Equal(t, map[string]int{"leased": 1}, reapertest.States(t, pool))
			reapertest.Exec(t, pool, `select from job_queue, queue_config for update nowait`)
		})
	}
}

// A database that was never migrated, or half: the error names what is missing,
// and nothing is changed.
func TestWhatIsMissingIsPostgreSQLsError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ breakage, code string }{
		"the queue":             {`drop table job_queue`, "42P01"},
		"the settings":          {`drop table queue_config`, "42P01"},
		"a column of the queue": {`alter table job_queue drop column lease_until`, "42703"},
		"a column that is set":  {`alter table job_queue drop column last_error`, "42703"},
		"a column of settings":  {`alter table queue_config drop column value`, "42703"},
		"the right to write":    {`revoke update on job_queue from %`, "42501"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "retryable", 2, 0, 5)
			reapertest.Stale(t, pool, "exhausted", 2, 4, 5)
			role := reapertest.One[string](t, pool, `select 'user_' || md5(current_database())`)
			reapertest.Exec(t, pool, `create role `+role)
			t.Cleanup(func() { reapertest.DropRole(t, pool, role) })
			reapertest.Exec(t, pool, `grant select, insert, update on all tables in schema public to `+role)
			reapertest.Exec(t, pool, strings.ReplaceAll(test.breakage, "%", role))
			asRole := pgtest.Connect(t, pool, func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["role"] = role })

			_, err := reapertest.New(t, asRole, reaper.Config{}).Apply(t.Context(), reapertest.Actor, 10)

			var pgErr *pgconn.PgError
			require.ErrorAs(t, err, &pgErr)
			require.Equal(t, test.code, pgErr.Code)
			if name != "the queue" {
				require.Equal(t, map[string]int{"leased": 4}, reapertest.States(t, pool))
			}
		})
	}
}
