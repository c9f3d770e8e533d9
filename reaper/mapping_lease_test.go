package reaper_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// started is the reference queue with the lease's start in lease_until.
func started(table reaper.Table) reaper.Config {
	return reaper.Config{Queue: table, Gates: reapertest.OpenGate}
}

// A length that is none must neither make a lease stale nor keep the others leased.
func TestLeaseSecondsOfEveryType(t *testing.T) {
	t.Parallel()
	integers := []string{"null", "-1", "30000"}
	fractions := append([]string{"'NaN'", "1e30", "-0.001", "100000000001"}, integers...)
	infinite := append([]string{"'Infinity'", "'-Infinity'"}, fractions...) // before PostgreSQL 14 no numeric is
	types := map[string]struct {
		live, stale []string
	}{
		"smallint":         {integers, []string{"0", "5"}},
		"integer":          {append([]string{"2147483647"}, integers...), []string{"0", "5"}},
		"bigint":           {append([]string{"9223372036854775807"}, integers...), []string{"0", "5"}},
		"numeric":          {fractions, []string{"0", "9.5", "0.000001"}},
		"real":             {infinite, []string{"0", "9.5", "'-0'"}},
		"double precision": {append([]string{"1e308"}, infinite...), []string{"0", "9.5", "5e-324"}},
		"seconds":          {integers, []string{"0", "5"}}, // a domain
	}
	for name, test := range types {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Exec(t, pool, `create domain seconds as integer; alter table job_queue add column length `+name)
			add := func(kind string, lengths []string) {
				for _, length := range lengths {
					reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until, length)
						values ('`+kind+`', 'leased', now() - interval '10 seconds', `+length+`)`)
				}
			}
			add("live", test.live)
			add("stale", test.stale)
			r := reapertest.New(t, pool, started(reaper.Table{Columns: reaper.Columns{LeaseSeconds: "length"}}))

			dryRun := review(t, r, 100)
			result := reapertest.Apply(t, r, 100)

			require.Equal(t, len(test.stale), dryRun.StaleLeaseCount)
			require.Equal(t, []int{len(test.stale), 0}, []int{result.ResetCount, result.FailedCount})
			require.Equal(t, []string{"stale"}, reapertest.Column(t, pool, `select distinct job_kind from job_queue where state <> 'leased'`))
		})
	}
}

// Starts that no worker writes, and some that it might. The ends are the server's own.
func TestStartsOfLeases(t *testing.T) {
	t.Parallel()
	starts := map[string]struct {
		start   string
		isStale bool
	}{
		"NULL":                      {"null", false},
		"infinity":                  {"'infinity'", false},
		"minus infinity":            {"'-infinity'", true},
		"before Christ":             {"'4713-01-01 00:00Z BC'", true},
		"the end of time":           {"'294276-12-31 23:59:59Z'", false},
		"ended just now":            {"now() - interval '1 hour 0.000001 s'", true},
		"ends now":                  {"now() - interval '1 hour'", false},
		"an hour that summer skips": {"'2025-03-30 00:59Z'", true},
		"in the future":             {"now() + interval '1 hour'", false},
	}
	mappings := map[string]struct {
		table reaper.Table
		alter string
	}{
		"an end":            {reaper.Table{}, ``},
		"an end, in UTC":    {reaper.Table{TimesInUTC: true}, zoneless},
		"a constant length": {reaper.Table{LeaseLength: time.Hour}, ``},
		"a column of lengths": {
			reaper.Table{Columns: reaper.Columns{LeaseSeconds: "length"}},
			`alter table job_queue add column length float default 3600`,
		},
		"a constant length, in UTC": {reaper.Table{LeaseLength: time.Hour, TimesInUTC: true}, zoneless},
		"a column of lengths, in UTC": {
			reaper.Table{Columns: reaper.Columns{LeaseSeconds: "length"}, TimesInUTC: true},
			zoneless + `; alter table job_queue add column length float default 3600`,
		},
	}
	for name, mapping := range mappings {
		for zone, settings := range sessions {
			t.Run(name+", "+zone, func(t *testing.T) {
				t.Parallel()
				pool := reapertest.WithSettings(t, pgtest.New(t), settings)
				reapertest.Exec(t, pool, mapping.alter)
				tx := reapertest.Begin(t, pool) // now() stands still
				stale := 0
				for kind, start := range starts {
					expression := `(` + start.start + `)::timestamptz`
					if mapping.table.LeaseLength == 0 && mapping.table.Columns.LeaseSeconds == "" {
						expression = `(case when ` + expression + ` < '294276-01-01Z' then ` + expression + ` + interval '1 hour' end)`
					}
					if mapping.table.TimesInUTC {
						expression += ` at time zone 'utc'`
					}
					reapertest.Exec(t, tx, `insert into job_queue (job_kind, state, lease_until) values ($1, 'leased', `+expression+`)`, kind)
					if start.isStale {
						stale++
					}
				}
				r := reapertest.New(t, tx, started(mapping.table))

				dryRun := review(t, r, 100)
				plan, err := r.ApplyPlan(t.Context(), reapertest.Actor, dryRun)
				require.NoError(t, err)

				require.Equal(t, stale, dryRun.StaleLeaseCount)
				require.Equal(t, stale, plan.ResetCount, plan)
				for i, job := range dryRun.Jobs {
					require.True(t, starts[job.JobKind].isStale, job.JobKind)
					want := reapertest.One[string](t, tx, `select to_jsonb((`+starts[job.JobKind].start+`)::timestamptz
						at time zone 'utc' + interval '3600 s') #>> '{}'`)
					require.Equal(t, want, utcText(job.LeaseUntil), job.JobKind)
					action := plan.Actions[i]
					require.WithinDuration(t, dryRun.EvaluatedAt.Add(10*time.Second), action.ScheduledAt, 0)
				}
				stored := `scheduled_at`
				if mapping.table.TimesInUTC {
					stored += ` at time zone 'utc'`
				}
				require.Equal(t, stale, reapertest.One[int](t, tx, `select count(*)::int from job_queue
					where state = 'retry_waiting' and `+stored+` = now() + interval '10 seconds'`))
			})
		}
	}
}

// zoneless gives the reference queue times without a zone.
const zoneless = `alter table job_queue alter lease_until type timestamp, alter scheduled_at drop default, alter scheduled_at type timestamp,
	alter scheduled_at set default (now() at time zone 'utc')`

// sessions are settings that a careless expression depends on.
var sessions = map[string]map[string]string{
	"in a zone with an odd offset": {"timezone": "Asia/Kathmandu"},
	"where summer has another":     {"timezone": "Europe/Vienna", "datestyle": "SQL, DMY"},
	"where it is yesterday":        {"timezone": "Pacific/Pago_Pago", "intervalstyle": "sql_standard", "datestyle": "German"},
}

// utcText is a time in the form that jsonb has for a timestamp.
func utcText(at time.Time) string {
	switch {
	case at.Equal(reaper.NegativeInfinity()):
		return "-infinity"
	case at.Year() < 1:
		return time.Date(1-at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC).
			Format("2006-01-02T15:04:05.999999") + " BC"
	}
	return at.UTC().Format("2006-01-02T15:04:05.999999")
}

// A time without a zone is in the session's, whatever that is; so live leases look stale in
// one session, and stale ones live in another. No call works over such a queue, and none
// changes anything.
func TestZonesOfTimesMustBeWhatTheMappingSays(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		table reaper.Table
		alter string
	}{
		"an end without a zone":          {reaper.Table{}, `alter lease_until type timestamp`},
		"a start without a zone":         {reaper.Table{LeaseLength: time.Hour}, `alter lease_until type timestamp`},
		"a start without, seconds":       {reaper.Table{Columns: reaper.Columns{LeaseSeconds: "length"}}, `alter lease_until type timestamp`},
		"a schedule without a zone":      {reaper.Table{}, `alter scheduled_at type timestamp`},
		"a schedule of a domain without": {reaper.Table{}, `alter scheduled_at type instant`},
		"an end with a zone, in UTC":     {reaper.Table{TimesInUTC: true}, `alter scheduled_at type timestamp`},
		"a start with a zone, in UTC":    {reaper.Table{TimesInUTC: true, LeaseLength: time.Hour}, `alter scheduled_at type timestamp`},
		"a schedule with a zone, in UTC": {reaper.Table{TimesInUTC: true}, `alter lease_until type timestamp`},
		"a start with, seconds, in UTC": {
			reaper.Table{TimesInUTC: true, Columns: reaper.Columns{LeaseSeconds: "length"}}, `alter scheduled_at type timestamp`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "kind", 2, 0, 5)
			reapertest.Exec(t, pool, `update job_queue set lease_until = lease_until - interval '1 day';
				alter table job_queue add column length int default 1;
				create domain moment as timestamp; create domain instant as moment; alter table job_queue `+test.alter)
			before := reapertest.Contents(t, pool)
			for _, hook := range []bool{false, true} {
				cfg := reaper.Config{Queue: test.table}
				if hook {
					cfg.OnApply = reapertest.NoHook
				}
				_, err := reapertest.New(t, pool, cfg).Apply(t.Context(), reapertest.Actor, 10)
				require.ErrorIs(t, err, reaper.ErrLeaseType)
				require.NotErrorIs(t, err, reaper.ErrOutcomeUnknown)
			}
			require.Equal(t, before, reapertest.Contents(t, pool))
		})
	}
}
