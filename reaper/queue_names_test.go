package reaper_test

import (
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// A name with a quote in it is a name, not SQL.
func TestNamesWithQuotesAreNames(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Stale(t, pool, "retryable", 2, 0, 5)
	reapertest.Stale(t, pool, "exhausted", 2, 4, 5)
	reapertest.Exec(t, pool, `create schema "Odd-Schema";
		alter table job_queue set schema "Odd-Schema";
		alter table "Odd-Schema".job_queue rename to "job""queue; drop table x";
		alter table "Odd-Schema"."job""queue; drop table x" rename column lease_until to "lease ""until""";
		alter table job_dead_letter rename to "dead 'letters'";
		alter table queue_config rename to "{queue}"`)
	queue := reaper.Table{
		Name:    pgx.Identifier{"Odd-Schema", `job"queue; drop table x`},
		Columns: reaper.Columns{LeaseUntil: `lease "until"`},
		States:  reaper.States{RetryWaiting: `it's \waiting`},
	}

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{
		Queue:      queue,
		Gates:      gates.Table{Name: pgx.Identifier{"{queue}"}},
		DeadLetter: deadletter.Table{Name: pgx.Identifier{"dead 'letters'"}},
	}), 10)

	require.Equal(t, 2, result.ResetCount)
	require.Equal(t, 2, result.DeadLetterCount)
	require.Equal(t, 2, reapertest.One[int](t, pool, `select count(*)::int from "Odd-Schema"."job""queue; drop table x"
		where state = $1 and "lease ""until""" is null`, `it's \waiting`))
}
