package deadletter_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// Where a letter cannot be made to fit, the operator has to hear why, and the
// others have to go on.
func TestARowThatCannotBeRebuiltIsAFailure(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		since    string
		sqlState string
		text     string
	}{
		"a mandatory column without a default": {
			`update job_dead_letter set job = job || '{"new": 1}' where job_kind = 'even'; alter table job_queue add column new int not null`,
			"23502", `null value in column "new" of relation "job_queue" violates not-null constraint`,
		},
		"a constraint": {
			`alter table job_queue add check (job_kind <> 'odd')`,
			"23514", `new row for relation "job_queue" violates check constraint "job_queue_job_kind_check"`,
		},
		"another row has what is unique": {
			`create unique index only_one on job_queue (job_kind) where job_kind = 'odd'; insert into job_queue (job_kind) values ('odd')`,
			"23505", `duplicate key value violates unique constraint "only_one"`,
		},
		"a value that does not fit": {
			`alter table job_queue drop column mine; alter table job_queue add column mine int;
			update job_dead_letter set job = job || '{"mine": "secret"}' where job_kind = 'odd'`,
			"22P02", "a stored value does not fit its column",
		},
		"a letter that is no object": {
			`update job_dead_letter set job = '["secret"]' where job_kind = 'odd'`,
			"22023", "a stored value does not fit its column",
		},
		"a trigger that says nothing": {
			`create function away() returns trigger language plpgsql as $$ begin if new.job_kind = 'odd' then return null; end if; return new; end $$;
			create trigger away before insert on job_queue for each row execute function away()`,
			"", "the write was rejected without an error, by a trigger or a policy",
		},
		"a trigger that keeps the letter unmarked": {
			`create function away() returns trigger language plpgsql as $$ begin if new.job_kind = 'odd' then return null; end if; return new; end $$;
			create trigger away before update on job_dead_letter for each row execute function away()`,
			"", "the write was rejected without an error, by a trigger or a policy",
		},
		"a trigger that changes the state": {
			`create function away() returns trigger language plpgsql as $$ begin if new.job_kind = 'odd' then new.state := 'held'; end if; return new; end $$;
			create trigger away before insert on job_queue for each row execute function away()`,
			"", "the write was rejected without an error, by a trigger or a policy",
		},
		"a trigger that speaks up": {
			`create function away() returns trigger language plpgsql as $$ begin if new.job_kind = 'odd' then raise 'not here' using errcode = 'JQ001'; end if; return new; end $$;
			create trigger away before insert on job_queue for each row execute function away()`,
			"JQ001", "the row was rejected; PostgreSQL's message is left out, as it may hold what the job held",
		},
		"a constraint that waits for the commit": {
			`create table kinds (kind text primary key); insert into kinds values ('even');
			alter table job_queue add foreign key (job_kind) references kinds deferrable initially deferred`,
			"23503", `insert or update on table "job_queue" violates foreign key constraint "job_queue_job_kind_fkey"`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, `alter table job_queue add column mine text default '42'`)
			ids := bury(t, pool, "even", "odd", "even", "even")
			letter := letterOf(t, pool, ids[1])
			reapertest.Exec(t, pool, `delete from job_queue`)
			reapertest.Exec(t, pool, test.since)
			before := reapertest.One[string](t, pool, oddRows)

			result := redriveAll(t, pool, deadletter.Filter{})

			require.Equal(t, []deadletter.Failure{{letter, ids[1], test.sqlState, test.text}}, result.Failures)
			require.Equal(t, []string{ids[0], ids[2], ids[3]}, jobsOf(result))
			require.Equal(t, before, reapertest.One[string](t, pool, oddRows))
			reapertest.RequireAgreement(t, pool)
		})
	}
}

// Rejected rows of a large batch are found by halving, and cost the others
// nothing.
func TestRedriveFindsTheFewThatCannot(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	enqueue(t, pool, many(300)...)
	require.Equal(t, 300, reap(t, pool).DeadLetterCount)
	reapertest.Exec(t, pool, `delete from job_queue where hashtext(job_id::text) % 2 = 0`)
	reapertest.Exec(t, pool, `alter table job_queue add check (state <> 'retry_waiting' or job_kind not in ('kind-7', 'kind-77', 'kind-78', 'kind-299'))`)

	result := redriveAll(t, pool, deadletter.Filter{})

	require.Equal(t, 296, result.RedrivenCount)
	require.Len(t, result.Failures, 4)
	reapertest.RequireAgreement(t, pool)
}
