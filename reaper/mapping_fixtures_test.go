package reaper_test

import (
	"cmp"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// library is a queue as a library, or a team, has it: a table called jobs with a text
// column called label, and how the reaper is told of it.
type library struct {
	ddl string

	// insert adds $2 leased jobs with label $1 and $3 attempts, whose leases ended $4
	// seconds ago, and one second apart before that.
	insert string

	// status is, of q, a row: leased, reset, dead, or something else; fresh is whether it
	// is as it was when it was new.
	status, fresh string

	// claim leases the redriven jobs, and lets their leases end; movedAt is the column with
	// the time of a move.
	claim, movedAt string

	// young and spent are the attempts of a job that is to be reset, and of one that
	// is to be moved; reset and moved are what they are after it. maximum is that of moved ones.
	young, spent, reset, moved, maximum int

	cfg reaper.Config
}

// libraries are the queues of the tests.
var libraries = map[string]library{
	"river": {
		ddl: `create type job_state as enum ('available', 'running', 'retryable', 'discarded', 'completed');
			create table jobs (label text, id bigint generated always as identity primary key, kind text not null,
				state job_state not null, attempt smallint not null, max_attempts smallint not null default 25,
				attempted_at timestamptz, attempted_by text[], scheduled_at timestamptz not null default now(),
				finalized_at timestamptz, errors jsonb[],
				check ((finalized_at is null) = (state not in ('discarded', 'completed'))));
			create index on jobs (attempted_at) where state = 'running'`,
		insert: `insert into jobs (label, kind, state, attempt, attempted_at, attempted_by)
			select $1, 'river', 'running', $3, now() - make_interval(hours => 1, secs => $4::float + i - 1), '{"worker {1}"}'
			from generate_series(1, $2::int) i`,
		status: `case when state = 'retryable' and attempted_by is not null and attempted_at is not null then 'reset'
			when state = 'discarded' and finalized_at is not null then 'dead'
			when state = 'running' and attempted_by is not null then 'leased' end`,
		fresh: `state = 'retryable' and attempt = 0 and finalized_at is null`,
		claim: `update jobs set state = 'running', attempt = 1, attempted_at = now() - interval '2 h' where state = 'retryable'`,
		young: 1, spent: 25, reset: 1, moved: 25, maximum: 25, movedAt: "finalized_at",
		cfg: reaper.Config{DeadLetter: deadletter.InPlace{}, Queue: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "kind", Attempts: "attempt", LeaseUntil: "attempted_at",
				LeaseOwner: "attempted_by", LastError: reaper.None},
			States:      reaper.States{Leased: "running", RetryWaiting: "retryable", DeadLetter: "discarded"},
			LeaseLength: time.Hour, CountsAtClaim: true,
			OnReset: reaper.Set{"attempted_at": reaper.Keep, "attempted_by": reaper.Keep, "finalized_at": nil},
			OnMove:  reaper.Set{"attempted_at": reaper.Keep, "attempted_by": reaper.Keep, "finalized_at": reaper.Now},
		}},
	},
	"graphile-worker": {
		ddl: `create table jobs (label text, id bigint generated always as identity primary key, task_id int not null,
				payload json default '{}', run_at timestamptz not null default now(), attempts smallint not null,
				max_attempts smallint not null default 25, last_error text, locked_at timestamptz, locked_by text,
				flags jsonb, is_available boolean generated always as (locked_at is null and attempts < max_attempts) stored);
			create index on jobs (locked_at)`,
		insert: `insert into jobs (label, task_id, attempts, locked_at, locked_by)
			select $1, 7, $3, now() - make_interval(hours => 4, secs => $4::float + i - 1), 'worker'
			from generate_series(1, $2::int) i`,
		status: `case when is_available and locked_by is null and last_error = 'lease_expired_reaped' then 'reset'
			when not is_available and locked_at is null and flags = '{"dead": true}' then 'dead'
			when locked_at is not null and locked_by is not null then 'leased' end`,
		fresh: `is_available and attempts = 0 and flags is null and last_error is null`,
		claim: `update jobs set attempts = 1, locked_at = now() - interval '5 h', locked_by = 'w' where is_available`,
		young: 1, spent: 25, reset: 1, moved: 25, maximum: 25,
		cfg: reaper.Config{DeadLetter: deadletter.InPlace{}, Queue: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "task_id", State: reaper.None, ScheduledAt: "run_at",
				LeaseUntil: "locked_at", LeaseOwner: "locked_by"},
			LeaseLength: 4 * time.Hour, CountsAtClaim: true,
			OnReset: reaper.Set{"flags": nil}, OnMove: reaper.Set{"flags": `{"dead": true}`},
		}},
	},
	"pg-boss": {
		ddl: `create type job_state as enum ('created', 'retry', 'active', 'completed', 'failed');
			create table jobs (label text, id uuid not null default gen_random_uuid(), name text not null,
				state job_state not null, retry_limit int not null default 2, retry_count int not null,
				expire_seconds int not null default 900, start_after timestamptz not null default now(),
				started_on timestamptz, completed_on timestamptz, output jsonb) partition by list (name);
			create table jobs_a partition of jobs (primary key (name, id)) for values in ('a');
			create table jobs_b partition of jobs (primary key (name, id)) for values in ('b')`,
		insert: `insert into jobs (label, name, state, retry_count, started_on)
			select $1, (array['a', 'b'])[1 + i % 2], 'active', $3, now() - make_interval(secs => 900 + $4::float + i - 1)
			from generate_series(1, $2::int) i`,
		status: `case when state = 'retry' and started_on is not null then 'reset'
			when state = 'failed' and completed_on is not null and output ->> 'why' = 'it''s lost' then 'dead'
			when state = 'active' and started_on is not null then 'leased' end`,
		fresh: `state = 'retry' and retry_count = 0 and completed_on is null and output is null`,
		claim: `update jobs set state = 'active', retry_count = 1, started_on = now() - interval '2 h' where state = 'retry'`,
		young: 1, spent: 2, reset: 1, moved: 2, maximum: 2, movedAt: "completed_on",
		cfg: reaper.Config{DeadLetter: deadletter.InPlace{}, Queue: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "name", Attempts: "retry_count", MaxAttempts: "retry_limit",
				ScheduledAt: "start_after", LeaseUntil: "started_on", LeaseSeconds: "expire_seconds",
				LeaseOwner: reaper.None, LastError: reaper.None},
			States:        reaper.States{Leased: "active", RetryWaiting: "retry", DeadLetter: "failed"},
			CountsAtClaim: true, OnReset: reaper.Set{"started_on": reaper.Keep, "completed_on": nil, "output": nil},
			OnMove: reaper.Set{"started_on": reaper.Keep, "completed_on": reaper.Now, "output": `{"why": "it's lost"}`},
		}},
	},
	"oban": {
		ddl: `create type job_state as enum ('available', 'executing', 'retryable', 'discarded', 'completed');
			create table jobs (label text, id bigint generated always as identity primary key, worker text not null,
				state job_state not null, attempt int not null, max_attempts int not null default 20,
				attempted_at timestamp, attempted_by text[], scheduled_at timestamp not null default (now() at time zone 'utc'),
				discarded_at timestamp, check (attempt between 0 and max_attempts));
			create index on jobs (attempted_at) where state = 'executing'`,
		insert: `insert into jobs (label, worker, state, attempt, attempted_at, attempted_by)
			select $1, 'oban', 'executing', $3,
				(now() - make_interval(mins => 30, secs => $4::float + i - 1)) at time zone 'utc', '{node,id}'
			from generate_series(1, $2::int) i`,
		status: `case when state = 'retryable' and attempted_at is null then 'reset'
			when state = 'discarded' and discarded_at between moment - interval '1 minute' and moment then 'dead'
			when state = 'executing' then 'leased' end`,
		fresh: `state = 'retryable' and attempt = 0 and discarded_at is null and scheduled_at between moment - interval '1 m' and moment`,
		claim: `update jobs set state = 'executing', attempt = 1, attempted_at = (now() - interval '2 h') at time zone 'utc'
			where state = 'retryable'`,
		young: 19, spent: 20, reset: 19, moved: 20, maximum: 20, movedAt: "discarded_at",
		cfg: reaper.Config{DeadLetter: deadletter.InPlace{}, Queue: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "worker", Attempts: "attempt", LeaseUntil: "attempted_at",
				LeaseOwner: "attempted_by", LastError: reaper.None},
			States:      reaper.States{Leased: "executing", RetryWaiting: "retryable", DeadLetter: "discarded"},
			LeaseLength: 30 * time.Minute, CountsAtClaim: true, TimesInUTC: true,
			OnReset: reaper.Set{"discarded_at": nil}, OnMove: reaper.Set{"discarded_at": reaper.Now},
		}},
	},
	"delayed_job": {
		ddl: `create table jobs (label text, id bigint generated always as identity primary key, attempts int not null,
				handler text, last_error text, run_at timestamp default (now() at time zone 'utc'), locked_at timestamp,
				failed_at timestamp, locked_by varchar, queue varchar, cron boolean default false, "it's" text default 'a\b''c');
			create index on jobs (locked_at)`,
		insert: `insert into jobs (label, attempts, locked_at, locked_by)
			select $1, $3, (now() - make_interval(hours => 4, secs => $4::float + i - 1)) at time zone 'utc', 'host:x'
			from generate_series(1, $2::int) i`,
		status: `case when locked_at is null and failed_at is null and last_error = 'lease_expired_reaped' then 'reset'
			when locked_at is null and failed_at between moment - interval '1 minute' and moment then 'dead'
			when locked_at is not null and locked_by is not null then 'leased' end`,
		fresh: `locked_at is null and attempts = 0 and failed_at is null and run_at between moment - interval '1 m' and moment`,
		claim: `update jobs set attempts = 0, locked_at = (now() - interval '5 h') at time zone 'utc', locked_by = 'x' where locked_at is null`,
		young: 23, spent: 24, reset: 24, moved: 25, maximum: 25, movedAt: "failed_at",
		cfg: reaper.Config{DeadLetter: deadletter.InPlace{}, Queue: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "queue", State: reaper.None, MaxAttempts: reaper.None,
				ScheduledAt: "run_at", LeaseUntil: "locked_at", LeaseOwner: "locked_by"},
			LeaseLength: 4 * time.Hour, MaxAttempts: 25, TimesInUTC: true,
			Only:    reaper.Set{"failed_at": nil, "cron": false, "it's": `a\b'c`},
			OnReset: reaper.Set{"failed_at": nil}, OnMove: reaper.Set{"failed_at": reaper.Now},
		}},
	},
	"a team's own": {
		ddl: `create extension citext; create domain tries as smallint; create domain moment as timestamp;
			create table "Jobs" (label text, "ID {queue}" bigint generated always as identity primary key, "Kind" citext, st int not null,
				tries tries, lost smallint, run_at moment, owner uuid, locked_until moment, why varchar,
				dead boolean default false, "{queue} "" Note" text);
			create view jobs as select * from "Jobs"; create index on "Jobs" (locked_until) where st = 1;
			alter table job_dead_letter alter job_id type bigint using null`,
		insert: `insert into "Jobs" (label, "Kind", st, tries, lost, owner, locked_until)
			select $1, 'Mail', 1, 7, nullif($3::int, 0), gen_random_uuid(), (now() - make_interval(secs => $4::float + i - 1)) at time zone 'utc'
			from generate_series(1, $2::int) i`,
		status: `case when st = 2 and tries = 6 and why = 'lease_expired_reaped' and owner is null and "{queue} "" Note" = '-3' then 'reset'
			when st = 3 and tries = 7 and dead and exists (select from job_dead_letter d
				where d.job_id = q."ID {queue}" and d.attempts = 7 and d.max_attempts = 9 and d.job ->> 'lost' = '3') then 'dead'
			when st = 1 and tries = 7 and owner is not null then 'leased' end`,
		fresh: `st = 2 and tries = 0 and lost = 0 and not dead and "{queue} "" Note" = '-3' and why is null`,
		claim: `update "Jobs" set st = 1, tries = 1, locked_until = moment - interval '5 h' from (select now() at time zone 'utc') as _(moment) where st = 2`,
		young: 0, spent: 2, reset: 6, moved: 7, maximum: 9,
		cfg: reaper.Config{Queue: reaper.Table{
			Name: pgx.Identifier{"Jobs"},
			Columns: reaper.Columns{JobID: "ID {queue}", JobKind: "Kind", State: "st", Attempts: "tries", MaxAttempts: reaper.None,
				LostLeases: "lost", ScheduledAt: "run_at", LeaseOwner: "owner", LeaseUntil: "locked_until", LastError: "why"},
			States:      reaper.States{Leased: "1", RetryWaiting: "2", DeadLetter: "3"},
			MaxAttempts: 9, MaxLostLeases: 3, CountsAtClaim: true, TimesInUTC: true,
			OnReset: reaper.Set{`{queue} " Note`: -3, "dead": false}, OnMove: reaper.Set{"dead": true},
		}},
	},
}

// config is how the queue is reaped, with all gates open.
func (l library) config() reaper.Config {
	cfg := l.cfg
	cfg.Gates = reapertest.OpenGate
	if len(cfg.Queue.Name) == 0 {
		cfg.Queue.Name = pgx.Identifier{"jobs"}
	}
	return cfg
}

// open is a database with the queue, and nothing in it. Its sessions are in a zone that
// is far from UTC.
func (l library) open(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := reapertest.WithSettings(t, pgtest.New(t), map[string]string{"timezone": "Asia/Tokyo"})
	reapertest.Exec(t, pool, l.ddl)
	return pool
}

// add adds n leased jobs whose leases ended, the last of them some seconds ago.
func (l library) add(t *testing.T, db reapertest.Execer, label string, n, attempts int, ago float64) {
	t.Helper()
	reapertest.Exec(t, db, l.insert, label, n, attempts, ago)
}

// seen counts the jobs by their label and status.
func (l library) seen(t *testing.T, db reapertest.Execer) map[string]int {
	t.Helper()
	rows, err := db.Query(t.Context(), `select label || ' ' || coalesce(`+l.status+`, 'broken: ' || q), count(*)::int
		from jobs q, (select now() at time zone 'utc') as _(moment) group by 1`)
	require.NoError(t, err)
	seen := map[string]int{}
	var label string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&label, &n}, func() error {
		seen[label] = n
		return nil
	})
	require.NoError(t, err)
	return seen
}

// reject makes every write but a lease of the jobs with label bad an error.
func (l library) reject(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	queue := l.config().Queue
	leased := pgx.Identifier{queue.Columns.LeaseUntil}.Sanitize() + ` is not null`
	if queue.States.Leased != "" {
		leased = pgx.Identifier{cmp.Or(queue.Columns.State, "state")}.Sanitize() + ` = '` + queue.States.Leased + `'`
	}
	reapertest.Exec(t, pool, `alter table `+queue.Name.Sanitize()+` add constraint rejecting check (label <> 'bad' or `+leased+`)`)
}
