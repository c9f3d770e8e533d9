package interleave_test

const (
	job1 = "00000000-0000-0000-0000-000000000001"
	job2 = "00000000-0000-0000-0000-000000000002"
	job3 = "00000000-0000-0000-0000-000000000003"
	job4 = "00000000-0000-0000-0000-000000000004"
	job5 = "00000000-0000-0000-0000-000000000005"
	job6 = "00000000-0000-0000-0000-000000000006"
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

const sqlDryRunOnly = `
update queue_config set value = 'true' where key = 'queue.lease.reaper_dry_run_only';`

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
