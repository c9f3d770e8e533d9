package reaper_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

// soundly is what a library's queue has besides what its own migration makes.
var soundly = map[string]string{
	"pg-boss": `create index on jobs (id); create index on jobs (started_on) where state = 'active'`,
	"a team's own": `alter table "Jobs" alter tries set not null;
		alter table job_dead_letter alter job_kind drop not null, alter max_attempts type bigint`,
}

// openSound is a queue of which there is nothing to report.
func (l library) openSound(t *testing.T, name string) *pgxpool.Pool {
	t.Helper()
	pool := l.open(t)
	reapertest.Exec(t, pool, soundly[name])
	return pool
}

// object is the queue, or a column of it, as a report has it.
func (l library) object(column string) string {
	name := l.config().Queue.Name
	if column != "" {
		name = append(name, column)
	}
	return name.Sanitize()
}

// A report that calls the queue of a library wrong is not read the next time.
func TestVerifyIsSilentOverLibraries(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := library.openSound(t, name)
			library.fill(t, pool)

			require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
			reapertest.Apply(t, reapertest.New(t, pool, library.config()), 100)
			require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems, "with jobs that are reset and moved")
		})
	}
}

// dropLeaseIndexes drops each index but the keys and what begins with the id.
const dropLeaseIndexes = `do $$ declare name text; begin
	for name in select i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indrelid
		where c.relname ilike 'jobs' and not i.indisunique and pg_get_indexdef(i.indexrelid, 1, true) <> 'id'
	loop execute 'drop index ' || name; end loop; end $$`

// Without the index every pass reads the whole queue. What the report offers must be an
// index that a claim over this mapping can use.
func TestVerifyOffersTheIndexThatServesALibrary(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		for what, index := range map[string]string{
			"no index": `select`, "an index on the label": `create index on TABLE (label)`,
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				pool := library.openSound(t, name)
				reapertest.Exec(t, pool, dropLeaseIndexes)
				reapertest.Exec(t, pool, inTable(library, index))

				problem := reapertest.OnlyProblem(t, pool, library.config())

				require.Equal(t, reaper.CodeIndexMissing, problem.Code)
				require.Equal(t, library.object(library.cfg.Queue.Columns.LeaseUntil), problem.Object)
				reapertest.Exec(t, pool, problem.Fix)
				require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems, problem.Fix)
			})
		}
	}
}

// inTable puts the names of a library's queue and of its lease's column into SQL.
func inTable(l library, sql string) string {
	return strings.NewReplacer("TABLE", l.object(""), "LEASE", l.cfg.Queue.Columns.LeaseUntil).Replace(sql)
}

// A claim reads each row of the index that is older. Where rows that are not leased keep
// their lease's column, these are all finished jobs; without a state there are none.
func TestVerifyTellsIndexesThatAlsoHoldOtherRows(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ index string }{
		"on the lease":               {`create index on TABLE ("LEASE")`},
		"on leases that are there":   {`create index on TABLE ("LEASE") where "LEASE" is not null`},
		"on the lease and the label": {`create index on TABLE ("LEASE", label)`},
	}
	for name, library := range libraries {
		for what, test := range tests {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				pool := library.openSound(t, name)
				reapertest.Exec(t, pool, dropLeaseIndexes)
				reapertest.Exec(t, pool, inTable(library, test.index))

				report := reapertest.Verify(t, pool, library.config())

				if library.cfg.Queue.Columns.State == reaper.None {
					require.Empty(t, report.Problems)
					return
				}
				require.Len(t, report.Problems, 1, report)
				require.Equal(t, reaper.CodeIndexMissing, report.Problems[0].Code)
				require.Contains(t, report.Problems[0].Message, "not leased")
				reapertest.Exec(t, pool, report.Problems[0].Fix)
				require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
			})
		}
	}
}

// The keys of a partitioned queue may be those of its partitions alone, and begin with
// another column: the ids are unique, and finding one reads everything.
func TestVerifyOverKeysThatBeginWithAnotherColumn(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ sql, code, fix string }{
		"of partitions": {`select`, reaper.CodeIndexMissing, `create index on "jobs" ("id")`},
		"of the parent": {
			`alter table jobs_a drop constraint jobs_a_pkey; alter table jobs_b drop constraint jobs_b_pkey;
				alter table jobs add primary key (name, id)`, reaper.CodeIndexMissing, `create index on "jobs" ("id")`,
		},
		"of a table": {
			`alter table jobs rename to old; create table jobs (like old including defaults, primary key (name, id));
				create index on jobs (started_on) where state = 'active'`,
			reaper.CodeKeyMissing, `create unique index concurrently on "jobs" ("id")`,
		},
		"of one partition of two": {
			`alter table jobs_b drop constraint jobs_b_pkey`,
			reaper.CodeKeyMissing, `create unique index on "jobs" ("id", "name")`,
		},
		"of partitions, one of them with an index": {`create index on jobs_a (id)`, reaper.CodeIndexMissing, `create index on "jobs" ("id")`},
		"of partitions, each with an index":        {sql: `create index on jobs_a (id); create index on jobs_b (id)`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			library := libraries["pg-boss"]
			pool := library.open(t)
			reapertest.Exec(t, pool, `create index on jobs (started_on) where state = 'active'`)
			reapertest.Exec(t, pool, test.sql)

			if test.code != "" {
				problem := reapertest.OnlyProblem(t, pool, library.config())
				require.Equal(t, []string{test.code, `"jobs"."id"`, test.fix}, []string{problem.Code, problem.Object, problem.Fix})
				reapertest.Exec(t, pool, problem.Fix)
			}
			require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
		})
	}
}

// A queue whose dead jobs stay where they are has no table for them.
func TestVerifyAsksForNoLettersInPlace(t *testing.T) {
	t.Parallel()
	library := libraries["river"]
	pool := library.open(t)
	reapertest.Exec(t, pool, `drop table job_dead_letter, queue_config`)

	require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
}

// A view may join what a library keeps in two tables. PostgreSQL writes to such a view
// only through a trigger.
func TestVerifyOverViewsOfLibraries(t *testing.T) {
	t.Parallel()
	library := libraries["river"]
	pool := library.open(t)
	reapertest.Exec(t, pool, `alter table jobs rename to stored; create table clients (worker text);
		create view jobs as select s.* from stored s join clients c on c.worker = s.attempted_by[1]`)

	problem := reapertest.OnlyProblem(t, pool, library.config())
	require.Equal(t, []string{reaper.CodeStatementRejected, `"jobs"`, ""}, []string{problem.Code, problem.Object, problem.Fix})
	require.Contains(t, problem.Message, "55000")

	reapertest.Exec(t, pool, `create function store() returns trigger language plpgsql as $$ begin
			update stored set state = new.state, scheduled_at = new.scheduled_at, finalized_at = new.finalized_at where id = new.id;
			return new; end $$;
		create trigger storing instead of update on jobs for each row execute function store()`)
	require.Empty(t, reapertest.Verify(t, pool, library.config()).Problems)
}

// An index over states that are integers may hold others than the leased one.
func TestVerifyTellsIndexesOverOtherIntegerStates(t *testing.T) {
	t.Parallel()
	library := libraries["a team's own"]
	pool := library.openSound(t, "a team's own")
	reapertest.Exec(t, pool, dropLeaseIndexes)
	reapertest.Exec(t, pool, `create index on "Jobs" (locked_until) where st <> 7`)

	problem := reapertest.OnlyProblem(t, pool, library.config())

	require.Equal(t, reaper.CodeIndexMissing, problem.Code)
	require.Contains(t, problem.Message, "not leased")
}
