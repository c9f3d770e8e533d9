package deadletter_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// lay makes a queue with a column for each value, and a job of its own that holds
// the value, and returns the names of those that a letter of the type can hold.
func lay(t *testing.T, pool *pgxpool.Pool, job string) []string {
	t.Helper()
	reapertest.Exec(t, pool, types)
	reapertest.Exec(t, pool, `alter table job_dead_letter alter column job type `+job+` using null`)
	available := reapertest.Column(t, pool, `select name::text from pg_available_extensions`)
	version := reapertest.One[int](t, pool, `select current_setting('server_version_num')::int`)
	var names []string
	for name, v := range values() {
		if v.since > version {
			continue
		}
		if v.asJSONB == "-" && job == "jsonb" || v.extension != "" && !slices.Contains(available, v.extension) {
			continue
		}
		if v.extension != "" {
			reapertest.Exec(t, pool, `create extension if not exists `+v.extension)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	var columns []string
	for i, name := range names {
		columns = append(columns, fmt.Sprintf("add column c%d %s", i, values()[name].typ))
	}
	reapertest.Exec(t, pool, `alter table job_queue `+strings.Join(columns, ", "))
	batch := &pgx.Batch{}
	for i, name := range names {
		batch.Queue(fmt.Sprintf(`insert into job_queue (job_kind, state, c%d) values ($1, 'dead_letter', %s)`, i, values()[name].value), name)
	}
	require.NoError(t, pool.SendBatch(t.Context(), batch).Close())
	return names
}

// What stands in place of an escape while a letter is read must never reach a job.
func TestARecordThatCannotBeReadIsAFailure(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)
	reapertest.Exec(t, pool, `
create type papers as (n int, j json);
alter table job_queue add column mine papers, add column list json[];
alter table job_dead_letter alter column job type json`)
	reapertest.Exec(t, pool, `
with q as (
  insert into job_queue (job_kind, state, mine, list)
  values ('odd', 'dead_letter', row(1, '"\u0000"'), null), ('even', 'dead_letter', null, array['"\ud800"']::json[])
  returning *
)
insert into job_dead_letter (job_id, job_kind, attempts, max_attempts, final_error, moved_by, job)
select job_id, job_kind, 5, 5, 'e', 'me', row_to_json(q.*) from q`)
	reapertest.Exec(t, pool, `delete from job_queue`)

	result := redriveAll(t, pool, deadletter.Filter{})

	require.Len(t, result.Failures, 1)
	require.Equal(t, "22P05", result.Failures[0].SQLState)
	require.Equal(t, []string{`{"\"\\ud800\""}`}, reapertest.Column(t, pool, `select list::text from job_queue`))
}
