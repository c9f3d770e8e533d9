package reaper_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// poison makes the queue turn bad jobs away, each in its own way. A bad job's
// kind begins with the poison's name.
var poison = map[string]struct{ sql, sqlState string }{
	"check": {
		`alter table job_queue add check (job_kind not like 'check%' or state = 'leased')`, "23514",
	},
	"foreign": {
		`create table job_state (state text primary key); insert into job_state values ('leased');
		alter table job_queue add column foreign_state text generated always as
			(case when job_kind like 'foreign%' then state end) stored references job_state`, "23503",
	},
	"unique": {
		`insert into job_queue (job_kind, state) values ('unique_taken', 'retry_waiting'), ('unique_taken', 'dead_letter');
		create unique index on job_queue (state) where job_kind like 'unique%' and state <> 'leased'`, "23505",
	},
	"raise": {
		`create function raise_it() returns trigger language plpgsql as
			$$ begin raise 'not this one' using errcode = 'LR001'; end $$;
		create trigger raise_it before update on job_queue for each row
			when (new.job_kind like 'raise%') execute function raise_it()`, "LR001",
	},
	"range": {
		`create function range_it() returns trigger language plpgsql as
			$$ begin new.max_attempts := new.max_attempts::bigint + 2147483647; return new; end $$;
		create trigger range_it before update on job_queue for each row
			when (new.job_kind like 'range%') execute function range_it()`, "22003",
	},
	"silent": {
		`create function silence() returns trigger language plpgsql as $$ begin return null; end $$;
		create trigger silence before update on job_queue for each row
			when (new.job_kind like 'silent%') execute function silence()`, "",
	},
	"deferred": {
		`create function complain() returns trigger language plpgsql as
			$$ begin raise 'too late' using errcode = '23514'; end $$;
		create constraint trigger complain after update on job_queue deferrable initially deferred for each row
			when (new.job_kind like 'deferred%') execute function complain()`, "23514",
	},
}

// One job that the database rejects, for whatever reason of its owner's, must
// not keep the others in the queue. It stays exactly as it was, and is named.
func TestABadRowStopsNobody(t *testing.T) {
	t.Parallel()

	for name, bad := range poison {
		for place, attempts := range map[string]int{"at its reset": 0, "at its move": 4} {
			t.Run(name+" "+place, func(t *testing.T) {
				t.Parallel()
				pool := openQueue(t)
				exec(t, pool, bad.sql)
				stale(t, pool, "good", 10, 0, 5)
				stale(t, pool, "good", 10, 4, 5)
				stale(t, pool, name, 1, attempts, 5)
				before := badRows(t, pool, name)

				result := apply(t, newReaper(t, pool, reaper.Config{}), 100)

				require.Equal(t, 10, result.ResetCount)
				require.Equal(t, 10, result.DeadLetterCount)
				requireFailures(t, pool, result, name, bad.sqlState, 1)
				require.Equal(t, before, badRows(t, pool, name))
			})
		}
	}
}

// badRows is the bad jobs' content and version.
func badRows(t *testing.T, pool *pgxpool.Pool, kind string) string {
	t.Helper()
	return one[string](t, pool, `select coalesce(string_agg(q::text || q.ctid, ',' order by job_id), '')
		from job_queue q where job_kind = $1`, kind)
}

func requireFailures(t *testing.T, pool *pgxpool.Pool, result *reaper.ApplyResult, kind, sqlState string, n int) {
	t.Helper()
	failed := map[string]bool{}
	for _, failure := range result.Failures {
		if one[string](t, pool, `select job_kind from job_queue where job_id = $1::uuid`, failure.JobID) == kind {
			require.Equal(t, sqlState, failure.SQLState)
			require.NotEmpty(t, failure.Error)
			failed[failure.JobID] = true
		}
	}
	require.Len(t, failed, n, "%+v", result.Failures)
	require.Len(t, result.Failures, result.FailedCount)
}

// Several kinds of bad rows at once, and more of them than there are good ones.
func TestManyBadRowsStopNobody(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ each, good int }{
		"one of each among a thousand": {1, 1000},
		"ten of each among ten":        {10, 10},
		"bad rows alone":               {3, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := openQueue(t)
			for name, bad := range poison {
				exec(t, pool, bad.sql)
				stale(t, pool, name, test.each, 0, 5)
				stale(t, pool, name, test.each, 4, 5)
			}
			stale(t, pool, "good", test.good, 0, 5)
			stale(t, pool, "good", test.good, 4, 5)

			result := apply(t, newReaper(t, pool, reaper.Config{}), 10000)

			require.Equal(t, test.good, result.ResetCount)
			require.Equal(t, test.good, result.DeadLetterCount)
			require.Equal(t, 2*test.each*len(poison), result.FailedCount)
			for name, bad := range poison {
				requireFailures(t, pool, result, name, bad.sqlState, 2*test.each)
			}
			require.Equal(t, test.good, one[int](t, pool, `select count(*)::int from job_dead_letter`))
			require.Equal(t, result.FailedCount, states(t, pool)["leased"])
		})
	}
}
