package reaper_test

import (
	"context"
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// A row with something odd in it stops the reaper for every other job, night
// after night. Each odd row here stands among ordinary ones.
func TestOddRowsStopNobody(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		set      string // what is odd about the row
		would    string // "": it is not stale
		state    string
		attempts int
		delaySec int64
	}{
		"its lease ended at -infinity":          {`lease_until = '-infinity'`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its lease never ends":                  {`lease_until = 'infinity'`, "", "leased", 0, 0},
		"its lease has no end":                  {`lease_until = null`, "", "leased", 0, 0},
		"its lease ended BC":                    {`lease_until = '0044-03-15 12:00:00+00 BC'`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its lease ended at the first instant":  {`lease_until = '4713-11-24 00:00:00+00 BC'`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its owner is NULL":                     {`lease_owner = null`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its attempts are the largest":          {`attempts = 2147483647`, reaper.WouldMove, "dead_letter", math.MaxInt32, 0},
		"its attempts and maximum are both":     {`attempts = 2147483647, max_attempts = 2147483647`, reaper.WouldMove, "dead_letter", math.MaxInt32, 0},
		"its attempts are one below":            {`attempts = 2147483646, max_attempts = 2147483647`, reaper.WouldMove, "dead_letter", math.MaxInt32, 0},
		"it may try once":                       {`max_attempts = 1`, reaper.WouldMove, "dead_letter", 1, 0},
		"it may not try":                        {`max_attempts = 0`, reaper.WouldMove, "dead_letter", 1, 0},
		"its maximum is the smallest":           {`max_attempts = -2147483648`, reaper.WouldMove, "dead_letter", 1, 0},
		"its attempts are negative":             {`attempts = -7`, reaper.WouldReset, "retry_waiting", -6, 10},
		"its attempts are the smallest":         {`attempts = -2147483648`, reaper.WouldReset, "retry_waiting", math.MinInt32 + 1, 10},
		"its backoff is at the ninth doubling":  {`attempts = 9, max_attempts = 1000`, reaper.WouldReset, "retry_waiting", 10, 5120},
		"its backoff is at the tenth doubling":  {`attempts = 10, max_attempts = 1000`, reaper.WouldReset, "retry_waiting", 11, 10240},
		"its backoff has reached the cap":       {`attempts = 11, max_attempts = 1000`, reaper.WouldReset, "retry_waiting", 12, 10240},
		"its backoff is far beyond the cap":     {`attempts = 500, max_attempts = 1000`, reaper.WouldReset, "retry_waiting", 501, 10240},
		"its kind and owner are empty":          {`job_kind = '', lease_owner = ''`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its kind is as odd as text can be":     {`job_kind = E'\n"\\''}{☃\t'`, reaper.WouldReset, "retry_waiting", 1, 10},
		"it is scheduled at infinity":           {`scheduled_at = 'infinity'`, reaper.WouldReset, "retry_waiting", 1, 10},
		"its last error is a megabyte of noise": {`last_error = repeat('x', 1048576)`, reaper.WouldReset, "retry_waiting", 1, 10},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := reapertest.OpenQueue(t)
			reapertest.Stale(t, pool, "ordinary", 2, 0, 5)
			id := reapertest.One[string](t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
				values ('odd', 'leased', 'worker', now() - interval '1 minute') returning job_id::text`)
			reapertest.Exec(t, pool, `update job_queue set `+test.set+` where job_id = $1`, id)
			r := reapertest.New(t, pool, reaper.Config{})

			dryRun, err := r.DryRun(t.Context(), 10)
			require.NoError(t, err)
			require.Equal(t, test.would, wouldAction(dryRun, id))
			requireReadsBack(t, dryRun)
			result := reapertest.Apply(t, r, 10)
			requireReadsBack(t, result)

			require.Empty(t, result.Failures)
			require.Len(t, result.Actions, dryRun.StaleLeaseCount)
			require.Equal(t, test.state, reapertest.One[string](t, pool, `select state from job_queue where job_id = $1`, id))
			require.Equal(t, test.attempts, reapertest.One[int](t, pool, `select attempts from job_queue where job_id = $1`, id))
			require.Equal(t, 2, reapertest.One[int](t, pool, `select count(*)::int from job_queue
				where job_kind = 'ordinary' and state = 'retry_waiting'`))
			if test.state == "retry_waiting" {
				require.Equal(t, test.delaySec, reapertest.One[int64](t, pool, `select extract(epoch from o.scheduled_at - s.scheduled_at)::bigint + 10
					from job_queue o, job_queue s where o.job_id = $1 and s.job_kind = 'ordinary' limit 1`, id))
			}
		})
	}
}

func wouldAction(dryRun *reaper.DryRunResult, id string) string {
	for _, job := range dryRun.Jobs {
		if job.JobID == id {
			return job.WouldAction
		}
	}
	return ""
}

// requireReadsBack marshals a result and reads it back as the same value.
func requireReadsBack[T any](t *testing.T, result *T) {
	t.Helper()
	var back T
	require.NoError(t, json.Unmarshal([]byte(reapertest.JSON(t, result)), &back))
	if dryRun, ok := any(result).(*reaper.DryRunResult); ok {
		dryRun.MoveCount = 0 // it is not in the JSON
	}
	if applied, ok := any(result).(*reaper.ApplyResult); ok {
		applied.More = false
		for i := range applied.Actions { // what is for metrics is not in the JSON
			a := &applied.Actions[i]
			a.JobKind, a.LeaseOwner, a.LeaseUntil, a.Overdue = "", "", time.Time{}, 0
		}
	}
	require.Equal(t, *result, back)
}

// A lease that ended at -infinity has no finite overdue, and a tool that reads
// the JSON must still see a number.
func TestDryRunShowsNegativeInfinity(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_until) values ('k', 'leased', '-infinity')`)

	result, err := reapertest.New(t, pool, reaper.Config{}).DryRun(t.Context(), 1)

	require.NoError(t, err)
	require.True(t, result.Jobs[0].LeaseUntil.Equal(reaper.NegativeInfinity()))
	text := reapertest.JSON(t, result)
	require.Contains(t, text, `"lease_until":"-infinity"`)
	require.Contains(t, text, `"overdue_seconds":9223372036854775807`)
	require.Contains(t, text, `"lease_owner":null`)
}

// The library that the queue's owners added their own columns to must leave
// them alone, whatever they hold.
func TestApplyTouchesNoColumnOfTheUsers(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `alter table job_queue
		add column priority smallint not null default 3,
		add column tags text[] default '{a,NULL,"b c"}',
		add column cost numeric(40, 20) default 12345678901234567890.12345678901234567890,
		add column serial bigint generated always as identity,
		add column twice integer generated always as (max_attempts * 2) stored,
		add column raw json default '{"b": 1, "a": 2, "b": 3}'`)
	reapertest.Stale(t, pool, "kind", 5, 0, 5)
	reapertest.Stale(t, pool, "dying", 5, 4, 5)
	users := func() string {
		return reapertest.One[string](t, pool, `select string_agg(concat_ws('~', job_id, job_kind, payload, max_attempts, priority,
			tags, cost, serial, twice, raw), E'\n' order by job_id) from job_queue`)
	}
	before := users()

	reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 100)

	require.Equal(t, before, users())
	require.Equal(t, 5, reapertest.One[int](t, pool, `select count(*)::int from job_dead_letter d join job_queue q using (job_id)
		where d.job = to_jsonb(q) || jsonb_build_object('state', 'leased', 'last_error', null,
			'lease_owner', d.job->'lease_owner', 'lease_until', d.job->'lease_until')`))
}

// Base and exponent at their largest give a date beyond the year 9999.
func TestApplyWithTheLargestBackoff(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	setBase(t, pool, "315360000")
	reapertest.Stale(t, pool, "patient", 1, 20, 1000)

	result := reapertest.Apply(t, reapertest.New(t, pool, reaper.Config{}), 1)

	require.EqualValues(t, 315360000<<10, result.Actions[0].BackoffSec)
	require.Greater(t, result.Actions[0].ScheduledAt.Year(), 12000)
	require.Contains(t, reapertest.JSON(t, result), `"scheduled_at":"9999-12-31T23:59:59.999999Z"`)
	result.Actions[0].ScheduledAt = time.Date(9999, 12, 31, 23, 59, 59, 999999000, time.UTC) // what is read back
	requireReadsBack(t, result)
	require.True(t, reapertest.One[bool](t, pool, `select extract(epoch from scheduled_at - now()) > 322928000000 from job_queue`))
}

func setBase(t *testing.T, pool *pgxpool.Pool, value string) {
	t.Helper()
	_, err := pool.Exec(context.WithoutCancel(t.Context()),
		`insert into queue_config (key, value) values ('queue.retry.backoff_base_sec', $1)`, value)
	require.NoError(t, err)
}
