package deadletter_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// raising raises what the job of the kind odd holds.
func raising(using string) string {
	return `create function away() returns trigger language plpgsql as
  $$ begin if new.job_kind = 'odd' then raise 'no: %', new.mine using hint = new.mine, detail = new.mine` + using + `; end if; return new; end $$;
create trigger away before insert on job_queue for each row execute function away()`
}

// becoming gives the column of the letters' texts another type, and the job of the
// kind odd a text that is none of that.
func becoming(typ, text string) string {
	return `alter table job_queue drop column mine; alter table job_queue add column mine ` + typ + `;
update job_dead_letter set job = job - 'mine' || case when job_kind = 'odd' then '{"mine": "` + text + `"}' else '{}'::jsonb end`
}

// Failures go to logs and tickets. What a customer's job holds must not.
func TestNoFailureQuotesAJob(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ since, sqlState, names string }{
		"a trigger":                             {raising(``), "P0001", ""},
		"a trigger with a code of its own":      {raising(`, errcode = 'JQ001'`), "JQ001", ""},
		"a trigger like a check":                {raising(`, errcode = '23514', constraint = 'my_rule'`), "23514", "my_rule"},
		"a trigger like a column":               {raising(`, errcode = '23502', column = 'my_column'`), "23502", "my_column"},
		"a trigger like a missing privilege":    {raising(`, errcode = '42501'`), "42501", ""},
		"a trigger like a full disk":            {raising(`, errcode = '53100'`), "53100", ""},
		"a trigger like a lock":                 {raising(`, errcode = '55P03'`), "55P03", ""},
		"a trigger like a bug":                  {raising(`, errcode = 'XX000'`), "XX000", ""},
		"a query of texts":                      {becoming("tsquery", "secret &"), "42601", ""},
		"a word that is too long for it":        {becoming("tsquery", strings.Repeat("secret", 999)), "54000", ""},
		"a number":                              {becoming("int", "secret"), "22P02", ""},
		"a table":                               {becoming("regclass", "secret"), "42P01", ""},
		"a type":                                {becoming("regtype", "secret"), "42704", ""},
		"a function":                            {becoming("regprocedure", "secret()"), "42883", ""},
		"a schema":                              {becoming("regnamespace", "secret"), "3F000", ""},
		"a path":                                {becoming("jsonpath", "secret $"), "42601", ""},
		"a check":                               {`alter table job_queue add constraint my_rule check (job_kind <> 'odd')`, "23514", "my_rule"},
		"a domain":                              {`create domain mine as text constraint my_rule check (value = 'x'); ` + becoming("mine", "secret"), "23514", "my_rule"},
		"a policy that a trigger stands in for": {raising(`, errcode = '44000'`), "44000", ""},
		"a key": {
			`create unique index my_rule on job_queue (mine) where job_kind = 'odd'; insert into job_queue (job_kind) values ('odd')`, "23505", "my_rule",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			reapertest.Exec(t, pool, `alter table job_queue add column mine text default 'secret'`)
			ids := bury(t, pool, "even", "odd", "even")
			reapertest.Exec(t, pool, `delete from job_queue`)
			reapertest.Exec(t, pool, test.since)

			result := redriveAll(t, pool, deadletter.Filter{})
			require.Len(t, result.Failures, 1)
			require.Equal(t, test.sqlState, result.Failures[0].SQLState)
			require.Contains(t, result.Failures[0].Error, test.names)
			require.NotContains(t, result.Failures[0].Error, "secret")
			require.Equal(t, []string{ids[0], ids[2]}, jobsOf(result))

			// Alone it may be the error of the whole call.
			result, err := deadletter.Redrive(t.Context(), pool, deadletter.Store{}, operator, deadletter.Filter{}, 10)
			var pgErr *pgconn.PgError
			if errors.As(err, &pgErr) {
				require.Equal(t, test.sqlState, pgErr.Code)
				require.NotContains(t, fmt.Sprintf("%v %+v", err, *pgErr), "secret")
				return
			}
			require.NoError(t, err)
			require.NotContains(t, fmt.Sprintf("%+v", *result), "secret")
		})
	}
}

// A trigger that keeps a letter for a reason may name what the letter holds.
func TestNoFailureOfAPurgeQuotesAJob(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "even", "odd")
	reapertest.Exec(t, pool, `create function keep() returns trigger language plpgsql as
  $$ begin if old.job_kind = 'odd' then raise 'secret: %', old.job; end if; return old; end $$;
create trigger keep before delete on job_dead_letter for each row execute function keep()`)

	result := purgeAll(t, pool, 0, deadletter.PurgeConfig{Unredriven: true})

	require.Equal(t, 1, result.UnredrivenCount)
	require.Len(t, result.Failures, 1)
	require.Equal(t, "P0001", result.Failures[0].SQLState)
	require.NotContains(t, result.Failures[0].Error, "secret")
}
