package reaper_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// viewOf puts a view in the place of a table.
func viewOf(table, query string) string {
	return `alter table ` + table + ` rename to stored; create view ` + table + ` as ` + query + ` from stored`
}

// Whoever holds a lock on the queue, as for an index that is made, holds up an apply and
// must not hold up Verify.
func TestVerifyDoesNotWaitForALockOnTheTable(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, reapertest.Begin(t, pool), `lock table job_queue in share mode`)

	require.Empty(t, reapertest.Verify(t, pool, reaper.Config{}).Problems)
}

// PostgreSQL rejects a statement of every apply, whatever the rows hold, for a reason
// that only the planner knows. No SQL of the library's could solve it.
func TestVerifyHasTheStatementsPlanned(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		sql, code, object string
		since             int // the first server_version_num that knows it; 0: each
	}{
		"a queue that cannot be locked":        {viewOf(`job_queue`, `select distinct *`), reaper.CodeStatementRejected, `"job_queue"`, 0},
		"a view without a counter to write to": {viewOf(`job_queue`, `select job_id, job_kind, state, payload, attempts + 0 as attempts, max_attempts, scheduled_at, lease_owner, lease_until, last_error`), reaper.CodeStatementRejected, `"job_queue"`, 0},
		"a materialized view":                  {`alter table job_queue rename to stored; create materialized view job_queue as table stored`, reaper.CodeStatementRejected, `"job_queue"`, 0},
		"a rule instead of an update":          {`create rule kept as on update to job_queue do instead nothing`, reaper.CodeStatementRejected, `"job_queue"`, 0},
		"a rule instead of an insert":          {`create rule kept as on insert to job_dead_letter do instead nothing`, reaper.CodeStatementRejected, `"job_dead_letter"`, 0},
		"letters that are two tables":          {viewOf(`job_dead_letter`, `table stored union all select *`), reaper.CodeStatementRejected, `"job_dead_letter"`, 0},
		"settings that cannot be locked":       {viewOf(`queue_config`, `select distinct *`), reaper.CodeStatementRejected, `"queue_config"`, 0},
		"a default whose function is not for the role": {`create function hidden() returns int language sql as 'select 1'; revoke execute on function hidden from public;
			alter table job_dead_letter add column n int default hidden()`, reaper.CodePrivilegeMissing, `"job_dead_letter"`, 0},
		"a view with the rights of who asks": {`alter table job_queue rename to stored; create view job_queue with (security_invoker) as table stored;
			grant select, update on job_queue to {role}; revoke all on stored from {role}`, reaper.CodePrivilegeMissing, `"job_queue"`, 150000},
		"a published column that is not the key": {`create publication p for table job_queue (job_kind)`, reaper.CodeReplicaIdentity, `"job_queue"`, 150000},
		"a published state":                      {`create publication p for table job_queue where (state = 'dead_letter')`, reaper.CodeReplicaIdentity, `"job_queue"`, 150000},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, asRole, name := reapertest.LeastPrivileged(t)
			if reapertest.One[int](t, pool, `select current_setting('server_version_num')::int`) < test.since {
				return
			}
			reapertest.Exec(t, pool, strings.ReplaceAll(test.sql, role, name))
			reapertest.Exec(t, pool, `grant select, insert, update on job_queue, job_dead_letter, queue_config to `+name)

			report := reapertest.Verify(t, asRole, reaper.Config{})

			var found []string
			for _, problem := range report.Problems {
				if problem.Severity == reaper.SeverityError {
					found = append(found, problem.Code, problem.Object, problem.Fix)
				}
			}
			require.Equal(t, []string{test.code, test.object, ""}, found, report)
		})
	}
}
