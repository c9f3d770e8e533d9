package reaper_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// The JSON is what other tools read; a field that appears, goes or changes its
// form breaks them.
func TestTheJSONIsFixed(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.FixedZone("elsewhere", 3600))
	owner := "worker-1"
	receipt, err := deadletter.NewReceipt("id-2", []byte(`{"dead_letter_id": "d", "refused": false, "extra": 9007199254740993}`))
	require.NoError(t, err)

	tests := map[string]struct {
		result any
		want   string
	}{
		"a dry run": {
			reaper.DryRunResult{EvaluatedAt: at.UTC(), StaleLeaseCount: 2, Limit: 1, Jobs: []reaper.Job{{
				JobID: "id-1", JobKind: "k", LeaseOwner: &owner, LeaseUntil: at, Attempts: 1, MaxAttempts: 5,
				OverdueSeconds: 9, WouldAction: reaper.WouldMove,
			}}},
			`{"evaluated_at":"2026-03-01T11:00:00.123456Z","stale_lease_count":2,"limit":1,"mutation":false,"jobs":[
				{"job_id":"id-1","job_kind":"k","lease_owner":"worker-1","lease_until":"2026-03-01T11:00:00.123456Z",
				"attempts":1,"max_attempts":5,"overdue_seconds":9,"would_action":"move_to_dead_letter"}]}`,
		},
		"an empty dry run": {
			reaper.DryRunResult{EvaluatedAt: at.UTC(), Limit: 1},
			`{"evaluated_at":"2026-03-01T11:00:00.123456Z","stale_lease_count":0,"limit":1,"mutation":false,"jobs":[]}`,
		},
		"an apply": {
			reaper.ApplyResult{Actor: "a", ResetCount: 1, DeadLetterCount: 1, Actions: []reaper.Action{
				{Action: reaper.ActionReset, JobID: "id-1", Attempts: 1, BackoffSec: 0, ScheduledAt: at},
				{Action: reaper.ActionMoved, JobID: "id-2", Attempts: 5, DeadLetter: &receipt},
			}},
			`{"actor":"a","refused":false,"reset_count":1,"dead_letter_count":1,"actions":[
				{"action":"reset_to_retry_waiting","job_id":"id-1","attempts":1,"backoff_sec":0,
				"scheduled_at":"2026-03-01T11:00:00.123456Z"},
				{"action":"moved_to_dead_letter","job_id":"id-2","attempts":5,
				"dead_letter":{"dead_letter_id":"d","refused":false,"extra":9007199254740993}}]}`,
		},
		"an apply with a failure": {
			reaper.ApplyResult{Actor: "a", FailedCount: 1, Failures: []reaper.Failure{{JobID: "x", SQLState: "23514", Error: "no"}}},
			`{"actor":"a","refused":false,"reset_count":0,"dead_letter_count":0,"actions":[],
				"failed_count":1,"failures":[{"job_id":"x","sqlstate":"23514","error":"no"}]}`,
		},
		"a refusal": {
			reaper.ApplyResult{Refused: true, Reason: "actor_required"},
			`{"reason":"actor_required","refused":true}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.JSONEq(t, test.want, reapertest.JSON(t, test.result))
		})
	}
}

// A lease end that is written and not read back as the same instant would make
// every reviewed plan stale.
func FuzzLeaseUntilSurvivesJSON(f *testing.F) {
	const firstInstant, lastInstant = -210866803200000000, 9223371331199999999 // of timestamptz, from 1970 and 2000
	for _, micros := range []int64{
		0, -1, 1, 1e15 + 1, -62135596800000000, -62135596800000001, firstInstant, 253402300799999999, 253402300800000000,
	} {
		f.Add(micros)
	}
	f.Fuzz(func(t *testing.T, micros int64) {
		if micros < firstInstant || micros > lastInstant-946684800000000 {
			t.Skip() // outside timestamptz
		}
		job := reaper.Job{LeaseUntil: time.UnixMicro(micros).UTC()}
		var back reaper.Job
		require.NoError(t, json.Unmarshal([]byte(reapertest.JSON(t, job)), &back))
		if micros > lastOfRFC3339 {
			job.LeaseUntil = time.UnixMicro(lastOfRFC3339).UTC() // it is not stale for thousands of years
		}
		require.Equal(t, job, back)
	})
}

// lastOfRFC3339 is the last microsecond of the year 9999, from 1970.
const lastOfRFC3339 = 253402300799999999

// A year of five digits is no RFC 3339: a tool in another language stops at the
// whole result, for one job with a long backoff.
func TestTheJSONHasNoYearBeyond9999(t *testing.T) {
	t.Parallel()
	const last = "9999-12-31T23:59:59.999999Z"
	east, west := time.FixedZone("east", 3600), time.FixedZone("west", -3600)

	tests := map[string]struct {
		at   time.Time
		want string
	}{
		"the end of 9999":          {time.UnixMicro(lastOfRFC3339), last},
		"before it":                {time.UnixMicro(lastOfRFC3339 - 1), "9999-12-31T23:59:59.999998Z"},
		"a nanosecond after it":    {time.UnixMicro(lastOfRFC3339).Add(1), last},
		"the next year":            {time.UnixMicro(lastOfRFC3339 + 1), last},
		"that year in the east":    {time.Date(10000, 1, 1, 0, 30, 0, 0, east), "9999-12-31T23:30:00Z"},
		"the old one in the west":  {time.Date(9999, 12, 31, 23, 30, 0, 0, west), last},
		"ten thousand years later": {time.Date(12266, 1, 1, 0, 0, 0, 0, time.UTC), last},
		"PostgreSQL's last":        {time.Date(294276, 12, 31, 23, 59, 59, 999999000, time.UTC), last},
		"the year 1":               {time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), "0001-01-01T00:00:00Z"},
		"the year before it":       {time.Date(0, 3, 15, 12, 0, 0, 0, time.UTC), "0001-03-15T12:00:00Z BC"},
		"-infinity":                {reaper.NegativeInfinity(), "-infinity"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, reapertest.JSON(t, reaper.Action{ScheduledAt: test.at}), `"scheduled_at":"`+test.want+`"`)
			require.Contains(t, reapertest.JSON(t, reaper.Job{LeaseUntil: test.at}), `"lease_until":"`+test.want+`"`)
		})
	}
}

// Results that were stored with years of more digits stay readable, as they were.
func TestYearsOfMoreThanFourDigitsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"12266-01-01T00:00:00Z":             time.Date(12266, 1, 1, 0, 0, 0, 0, time.UTC),
		"12000-02-29T01:00:00.000001+01:00": time.Date(12000, 2, 29, 0, 0, 0, 1000, time.UTC),
		"294276-12-31T23:59:59.999999Z":     time.Date(294276, 12, 31, 23, 59, 59, 999999000, time.UTC),
	} {
		var action reaper.Action
		require.NoError(t, json.Unmarshal([]byte(`{"scheduled_at":"`+text+`"}`), &action))
		require.Equal(t, want, action.ScheduledAt, text)
		var job reaper.Job
		require.NoError(t, json.Unmarshal([]byte(`{"lease_until":"`+text+`"}`), &job))
		require.Equal(t, want, job.LeaseUntil, text)
	}
}

// A plan that was edited by hand must not pass for a time.
func TestAnOddTimeIsAnError(t *testing.T) {
	t.Parallel()

	for _, text := range []string{
		`""`, `"soon"`, `7`, `"2026-13-01T00:00:00Z"`, `"2026-02-29T00:00:00Z"`, `"2026-01-01"`, `"-"`, `"infinity"`, `" BC"`,
	} {
		require.Error(t, json.Unmarshal([]byte(`{"lease_until":`+text+`}`), &reaper.Job{}), text)
	}
	require.NoError(t, json.Unmarshal([]byte(`{"lease_until":"2028-02-29T01:00:00+01:00"}`), &reaper.Job{}))
}
