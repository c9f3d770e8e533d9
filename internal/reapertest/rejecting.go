package reapertest

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// RejectingSchemas has SQL that makes the queue reject bad jobs, each in its own way. The
// kind of a bad job begins with the key.
var RejectingSchemas = map[string]struct{ SQL, SQLState string }{
	"check": {
		`alter table job_queue add check (job_kind not like 'check%' or state = 'leased')`, "23514",
	},
	"foreign": {
		`create table job_state (state text primary key); insert into job_state values ('leased');
		alter table job_queue add column foreign_state text generated always as
			(case when job_kind like 'foreign%' then state end) stored references job_state`, "23503",
	},
	"unique": {
		`insert into job_queue (job_kind, state)
			values ('unique_taken', 'retry_waiting'), ('unique_taken', 'dead_letter');
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

// BadRows returns the content and the version of the jobs of a kind.
func BadRows(t *testing.T, pool *pgxpool.Pool, kind string) string {
	t.Helper()
	return One[string](t, pool, `select coalesce(string_agg(q::text || q.ctid, ',' order by job_id), '')
		from job_queue q where job_kind = $1`, kind)
}

// RequireFailures requires that n jobs of a kind have failed, all with an SQLSTATE.
func RequireFailures(t *testing.T, pool *pgxpool.Pool, result *reaper.ApplyResult, kind, sqlState string, n int) {
	t.Helper()
	failed := map[string]bool{}
	for _, failure := range result.Failures {
		if One[string](t, pool, `select job_kind from job_queue where job_id = $1::uuid`, failure.JobID) == kind {
			require.Equal(t, sqlState, failure.SQLState)
			require.NotEmpty(t, failure.Error)
			failed[failure.JobID] = true
		}
	}
	require.Len(t, failed, n, "%+v", result.Failures)
	require.Len(t, result.Failures, result.FailedCount)
}
