package deadletter_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// The reaper's session writes dates in one style, and the operator's reads them in
// another: a month becomes a day, and nobody notices.
func TestNoValueChangesWithTheStylesOfSessions(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		column, value      string
		reaping, redriving map[string]string
	}{
		"an interval's signs":           {"interval", `'-1 day -02:03:04'`, map[string]string{"intervalstyle": "sql_standard"}, nil},
		"signs that are read otherwise": {"interval", `'-1 day -02:03:04'`, nil, map[string]string{"intervalstyle": "sql_standard"}},
		"days and months":               {"daterange", `'[2026-02-01,2026-03-04)'`, map[string]string{"datestyle": "SQL, DMY"}, nil},
		"times in German": {"tstzrange", `'[2026-02-01 00:00:00+00,2026-03-04 00:00:00+00)'`,
			map[string]string{"datestyle": "German"}, nil},
		"a zone that another has too": {"tstzrange", `'[2026-02-01 00:00:00+00,2026-03-04 00:00:00+00)'`,
			map[string]string{"timezone": "Asia/Kolkata", "datestyle": "SQL, MDY"}, nil},
		"a float's digits": {"float8", `0.1::float8 + 0.2::float8`, map[string]string{"extra_float_digits": "0"}, nil},
		"a point's":        {"point", `point(0.1::float8 + 0.2::float8, 0)`, map[string]string{"extra_float_digits": "-3"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.OpenGates(t, pool)
			reapertest.Exec(t, pool, `alter table job_queue add column v `+test.column)
			reapertest.Stale(t, pool, "a", 1, 4, 5)
			reapertest.Exec(t, pool, `update job_queue set v = `+test.value)
			before := reapertest.One[string](t, pool, `select v::text from job_queue`)
			reaping := reapertest.WithSettings(t, pool, test.reaping)
			reapertest.Apply(t, reapertest.New(t, reaping, reaper.Config{}), 10)
			reapertest.Exec(t, pool, `delete from job_queue`)

			redriven, err := deadletter.Redrive(t.Context(), reapertest.WithSettings(t, pool, test.redriving),
				deadletter.Store{}, "op", deadletter.Filter{}, 10)

			require.NoError(t, err)
			require.Equal(t, 1, redriven.RedrivenCount)
			require.Equal(t, before, reapertest.One[string](t, pool, `select v::text from job_queue`))
		})
	}
}

// A caller's transaction goes on in the styles of its session.
func TestStylesOfACallersTransactionReturn(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.OpenGates(t, pool)
	reapertest.Stale(t, pool, "a", 1, 4, 5)
	tx := reapertest.Begin(t, reapertest.WithSettings(t, pool, map[string]string{
		"datestyle": "SQL, DMY", "intervalstyle": "sql_standard", "extra_float_digits": "0",
	}))
	styles := func() string {
		return reapertest.One[string](t, tx, `select concat_ws('; ', current_setting('datestyle'),
			current_setting('intervalstyle'), current_setting('extra_float_digits'))`)
	}

	require.Len(t, reapertest.Apply(t, reapertest.New(t, tx, reaper.Config{}), 10).Actions, 1)
	require.Equal(t, "SQL, DMY; sql_standard; 0", styles())
	reapertest.Exec(t, tx, `delete from job_queue`)
	_, err := deadletter.Redrive(t.Context(), tx, deadletter.Store{}, "op", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, "SQL, DMY; sql_standard; 0", styles())
}

// One letter that somebody has edited keeps all others from coming back, in a plan of
// the server's that reads documents before it knows whose they are.
func TestALetterThatIsNoObjectKeepsNoOther(t *testing.T) {
	t.Parallel()
	for _, columnType := range []string{"jsonb", "json", "text"} {
		for _, n := range []int{3, 300} {
			t.Run(fmt.Sprintf("%d letters of type %s", n, columnType), func(t *testing.T) {
				t.Parallel()
				pool := pgtest.New(t)
				reapertest.OpenGates(t, pool)
				reapertest.Stale(t, pool, "a", n, 4, 5)
				reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), n)
				spoilOne(t, pool, columnType)

				result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, "op", deadletter.Filter{}, 1000)

				require.NoError(t, err)
				require.Equal(t, n-1, result.RedrivenCount)
				require.Equal(t, 1, result.FailedCount)
			})
		}
	}
}

// spoilOne removes the queue's rows and makes one letter's document no object.
func spoilOne(t *testing.T, pool *pgxpool.Pool, columnType string) {
	t.Helper()
	reapertest.Exec(t, pool, `delete from job_queue`)
	reapertest.Exec(t, pool, `alter table job_dead_letter alter job type `+columnType)
	reapertest.Exec(t, pool, `update job_dead_letter set job = '5' where dead_letter_id = (select min(dead_letter_id::text)::uuid from job_dead_letter)`)
	reapertest.Exec(t, pool, `analyze job_dead_letter`)
}
