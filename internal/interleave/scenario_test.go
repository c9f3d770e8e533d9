package interleave_test

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// scenario is who meets, and over which rows.
type scenario struct {
	name string
	cast func(ctx context.Context, w *world) ([]participant, error)

	mode     pgx.QueryExecMode // 0: each statement in one exchange
	tables   string            // DDL of the scenario's own
	rows     string            // what is there before
	attempts map[int]int       // of the jobs, by their numbers
	settings gates.Values      // other than open gates
	rejected []string          // job ids
	waits    bool              // applies may wait for the operator

	whole, cuts int // how many schedules there are, without a cut and with one
}

// of makes a cast that is the same each time.
func of(cast ...participant) func(context.Context, *world) ([]participant, error) {
	return func(context.Context, *world) ([]participant, error) { return cast, nil }
}

const (
	job1 = "00000000-0000-0000-0000-000000000001"
	job2 = "00000000-0000-0000-0000-000000000002"
	job3 = "00000000-0000-0000-0000-000000000003"
	job4 = "00000000-0000-0000-0000-000000000004"
)

// stale are three jobs whose leases have ended, the second with its attempts used up, and
// one whose lease is live.
const stale = `
insert into job_queue (job_id, job_kind, payload, state, attempts, lease_owner, lease_until) values
	('` + job1 + `', 'mail', '{"N":1}', 'leased', 0, 'owner-1', now() - interval '9 min'),
	('` + job2 + `', 'mail', '{"N":2}', 'leased', 4, 'owner-2', now() - interval '8 min'),
	('` + job3 + `', 'mail', '{"N":3}', 'leased', 1, 'owner-3', now() - interval '7 min'),
	('` + job4 + `', 'mail', '{"N":4}', 'leased', 0, 'owner-4', now() + interval '1 hour');`

var staleAttempts = map[int]int{1: 0, 2: 4, 3: 1, 4: 0}

// unbounded stands for a number of schedules that nobody has counted.
const unbounded = 1 << 30

var scenarios = slices.Concat(reaping, governing, letters, others)

// reaping are those of reapers and workers.
var reaping = []scenario{
	{
		name: "reapers", whole: 20, cuts: 136,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "described", whole: unbounded, cuts: unbounded, mode: pgx.QueryExecModeDescribeExec,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "batches", whole: 35, cuts: 248,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(2, reaper.Config{}), applies(2, reaper.Config{OnApply: reapertest.NoHook})),
	},
	{
		name: "renewal", whole: 17, cuts: 124,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), changes(sqlRenew, lease{job1, "owner-1", 0}, true)),
	},
	{
		name: "completion", whole: 17, cuts: 124,
		rows: stale, attempts: staleAttempts,
		cast: of(applies(10, reaper.Config{}), changes(sqlEnd, lease{job2, "owner-2", 4}, true)),
	},
	{
		name: "claim", whole: 10, cuts: 66,
		rows: stale + ready, attempts: map[int]int{1: 0, 2: 4, 3: 1, 4: 0, 5: 2},
		cast: of(applies(10, reaper.Config{}), claimsAndRenews("1 hour")),
	},
	{
		name: "claim-brief", whole: 10, cuts: 66,
		rows: stale + ready, attempts: map[int]int{1: 0, 2: 4, 3: 1, 4: 0, 5: 2},
		cast: of(applies(10, reaper.Config{}), claimsAndRenews("1 microsecond")),
	},
	{
		name: "drains", whole: unbounded, cuts: unbounded,
		rows: equal, attempts: equalAttempts,
		cast: of(drains(1), drains(1), changes(sqlRenew, lease{job3, "owner-3", 1}, false)),
	},
}

// equal are four jobs whose leases have ended at the same time.
const equal = `
insert into job_queue (job_id, job_kind, payload, state, attempts, lease_owner, lease_until) values
	('` + job1 + `', 'mail', '{"N":1}', 'leased', 0, 'owner-1', now() - interval '9 min'),
	('` + job2 + `', 'mail', '{"N":2}', 'leased', 4, 'owner-2', now() - interval '9 min'),
	('` + job3 + `', 'mail', '{"N":3}', 'leased', 1, 'owner-3', now() - interval '9 min'),
	('` + job4 + `', 'mail', '{"N":4}', 'leased', 1, 'owner-4', now() - interval '9 min');`

var equalAttempts = map[int]int{1: 0, 2: 4, 3: 1, 4: 1}

// ready is a job that a worker can claim.
const ready = `
insert into job_queue (job_id, job_kind, payload, state, attempts) values
	('` + job5 + `', 'mail', '{"N":5}', 'retry_waiting', 2);`

// governing are those of a reaper and an operator who changes the settings.
var governing = []scenario{
	{
		name: "gate", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), sets(gates.ReaperEnabled, "false")),
	},
	{
		name: "gate-hook", whole: 24, cuts: 226,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{OnApply: reapertest.NoHook}), sets(gates.ReaperEnabled, "false")),
	},
	{
		name: "window-opens", whole: 15, cuts: 110,
		rows: stale + sqlDryRunOnly, attempts: staleAttempts, waits: true,
		settings: gates.Values{gates.DryRunOnly: "true"},
		cast:     of(applies(10, reaper.Config{}), opensWindow(time.Hour)),
	},
	{
		name: "window-ends", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), opensWindow(time.Microsecond)),
	},
	{
		name: "window-closes", whole: 19, cuts: 170,
		rows: stale, attempts: staleAttempts, waits: true,
		cast: of(applies(10, reaper.Config{}), closesWindow()),
	},
}

const sqlDryRunOnly = `
update queue_config set value = 'true' where key = 'queue.lease.reaper_dry_run_only';`

// letters are those of who looks after the dead letters.
var letters = []scenario{
	{
		name: "redrive", whole: 84, cuts: 656,
		rows: stale + dead, attempts: withDead,
		cast: of(redrives(), applies(10, reaper.Config{})),
	},
	{
		name: "redrives", whole: 130, cuts: 948,
		rows: dead, attempts: withDead,
		cast: of(redrives(), redrives()),
	},
	{
		name: "purge", whole: 997, cuts: 7320,
		rows: dead, attempts: withDead,
		cast: of(purges(), redrives()),
	},
}

const (
	job5 = "00000000-0000-0000-0000-000000000005"
	job6 = "00000000-0000-0000-0000-000000000006"
)

// dead are two jobs with their letters.
const dead = `
insert into job_queue (job_id, job_kind, payload, state, attempts) values
	('` + job5 + `', 'mail', '{"N":5}', 'dead_letter', 5),
	('` + job6 + `', 'mail', '{"N":6}', 'dead_letter', 5);
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, moved_at, job)
select job_id, job_kind, attempts, max_attempts, 'dead', 'reaper', now() - interval '2 days', to_jsonb(q)
from job_queue q
where state = 'dead_letter'
order by job_id;`

var withDead = map[int]int{1: 0, 2: 4, 3: 1, 4: 0, 5: 5, 6: 5}

// others are the rarer ways of a reaper.
var others = []scenario{
	{
		name: "plan", whole: 20, cuts: 136,
		rows: stale, attempts: staleAttempts,
		cast: func(ctx context.Context, w *world) ([]participant, error) {
			plan, err := newReaper(w.pool, reaper.Config{}).DryRun(ctx, 10)
			return []participant{appliesPlan(plan), applies(10, reaper.Config{})}, err
		},
	},
	{
		name: "isolating", whole: unbounded, cuts: unbounded,
		rows: stale, attempts: staleAttempts, rejected: []string{job1},
		tables: `alter table job_queue add constraint rejects check (payload <> '{"N":1}' or state <> 'retry_waiting');`,
		cast:   of(applies(10, reaper.Config{}), applies(10, reaper.Config{})),
	},
	{
		name: "caller", whole: 110, cuts: 846,
		rows: stale, attempts: staleAttempts,
		cast: of(appliesInside(10, true), applies(10, reaper.Config{})),
	},
	{
		name: "caller-rolls-back", whole: 110, cuts: 846,
		rows: stale, attempts: staleAttempts,
		cast: of(appliesInside(10, false), applies(10, reaper.Config{})),
	},
	{
		name: "twins", whole: 20, cuts: 136,
		tables: sqlPartitioned, rows: twins, attempts: map[int]int{1: 0, 2: 0, 3: 4, 4: 4},
		cast: of(applies(10, reaper.Config{}), changes(sqlEnd, lease{job1, "owner-2", 0}, true)),
	},
	{
		name: "twins-function", whole: 44, cuts: 296,
		tables: sqlFunction, rows: deadTwins, attempts: map[int]int{1: 4, 2: 2},
		cast: of(
			applies(10, reaper.Config{DeadLetter: deadletter.Function{}}),
			applies(10, reaper.Config{DeadLetter: deadletter.Function{}}),
		),
	},
}

// sqlPartitioned makes a queue whose rows are found by their keys, which are not unique.
const sqlPartitioned = `
alter table job_queue rename to job_queue_plain;
create table job_queue (like job_queue_plain including defaults) partition by hash (job_id);
create table job_queue_1 partition of job_queue for values with (modulus 1, remainder 0);
drop table job_queue_plain;`

// twins are two stale leases, one of them with its attempts used up, and two live ones of
// jobs with the same ids.
const twins = `
insert into job_queue (job_id, job_kind, payload, state, attempts, lease_owner, lease_until) values
	('` + job1 + `', 'mail', '{"N":1}', 'leased', 0, 'owner-1', now() - interval '9 min'),
	('` + job1 + `', 'mail', '{"N":2}', 'leased', 0, 'owner-2', now() + interval '1 hour'),
	('` + job3 + `', 'mail', '{"N":3}', 'leased', 4, 'owner-3', now() - interval '7 min'),
	('` + job3 + `', 'mail', '{"N":4}', 'leased', 4, 'owner-4', now() + interval '1 hour');`

// sqlFunction makes a queue whose ids are not unique, and a function that stores a letter
// of the first of the jobs with an id that has none.
const sqlFunction = `
alter table job_queue drop constraint job_queue_pkey;
create function fn_job_move_to_dead_letter(id uuid, actor text, error text) returns jsonb language sql as $$
	insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
	select q.job_id, q.job_kind, q.attempts, q.max_attempts, error, actor, to_jsonb(q)
	from job_queue q
	where q.job_id = id
		and not exists (select from job_dead_letter d where d.job -> 'payload' = q.payload)
	order by q.lease_until
	limit 1
	returning jsonb_build_object('dead_letter_id', dead_letter_id)
$$;`

// deadTwins are two stale leases of jobs with the same id, whose attempts are used up at
// different numbers.
const deadTwins = `
insert into job_queue (job_id, job_kind, payload, state, attempts, max_attempts, lease_owner, lease_until) values
	('` + job1 + `', 'mail', '{"N":1}', 'leased', 4, 5, 'owner-1', now() - interval '9 min'),
	('` + job1 + `', 'mail', '{"N":2}', 'leased', 2, 3, 'owner-2', now() - interval '8 min');`
