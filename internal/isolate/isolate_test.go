package isolate_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/isolate"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

const schema = `
create table things (n int);
create table bad (n int);
create function judge() returns trigger language plpgsql as $$
begin
  if not exists (select from bad b where b.n = new.n) then return new; end if;
  if tg_argv[0] = 'ignored' then return null; end if;
  if tg_argv[0] = 'slow' then perform pg_sleep(600); end if;
  raise exception 'no' using errcode = tg_argv[0];
end $$;`

const (
	judging = `create trigger judge before insert on things for each row execute function judge(`
	atLast  = `create constraint trigger judge after insert on things deferrable initially deferred
  for each row execute function judge(`
)

var errIgnored = errors.New("ignored")

// run is a writer of numbers, with its results.
type run struct {
	isolate.Writer[int]

	pool     *pgxpool.Pool
	rejected map[int]error
	tries    int
	timeouts []string // the lock_timeout of each try
}

// open makes a writer in a transaction, in a new database.
func open(t *testing.T, statements ...string) *run {
	t.Helper()
	return on(t, database(t, statements...))
}

func database(t *testing.T, statements ...string) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Empty(t)
	for _, sql := range append([]string{schema}, statements...) {
		reapertest.Exec(t, pool, sql)
	}
	return pool
}

// on makes a writer in a transaction, with empty tables.
func on(t *testing.T, pool *pgxpool.Pool) *run {
	t.Helper()
	r := &run{pool: pool, rejected: map[int]error{}}
	r.Tx = reapertest.Begin(t, pool)
	r.Queue = r.insert
	r.Reject = func(n int, cause error) { r.rejected[n] = cause }
	r.Ends = func(error) bool { return false }
	reapertest.Exec(t, r.Tx, `delete from things`)
	reapertest.Exec(t, r.Tx, `delete from bad`)
	return r
}

// insert queues an insert, and rejects the numbers that a trigger has skipped.
func (r *run) insert(batch *pgx.Batch, items []int) func(context.Context) error {
	r.tries++
	batch.Queue(`select current_setting('lock_timeout')`).QueryRow(func(row pgx.Row) error {
		var timeout string
		err := row.Scan(&timeout)
		r.timeouts = append(r.timeouts, timeout)
		return err
	})
	var stored []int
	batch.Queue(`insert into things select unnest($1::int[]) returning n`, items).Query(func(rows pgx.Rows) (err error) {
		stored, err = pgx.CollectRows(rows, pgx.RowTo[int])
		return err
	})
	return func(context.Context) error { return ignored(items, stored) }
}

func ignored(items, stored []int) error {
	causes := map[int]error{}
	for _, n := range items {
		if !slices.Contains(stored, n) {
			causes[n] = errIgnored
		}
	}
	if len(causes) == 0 {
		return nil
	}
	return &isolate.RejectedError[int]{Causes: causes}
}

// stored commits the transaction and returns the numbers in the table.
func (r *run) stored(t *testing.T) []int {
	t.Helper()
	require.NoError(t, r.Tx.Commit(t.Context()))
	rows, err := r.pool.Query(t.Context(), `select n from things order by n`)
	require.NoError(t, err)
	stored, err := pgx.CollectRows(rows, pgx.RowTo[int])
	require.NoError(t, err)
	return stored
}

// upTo returns the numbers below n, without some.
func upTo(n int, without ...int) []int {
	list := []int{}
	for i := range n {
		if !slices.Contains(without, i) {
			list = append(list, i)
		}
	}
	return list
}

// Without isolation one row that a trigger or a constraint rejects would stop the whole
// batch.
func TestBadItemsStandAlone(t *testing.T) {
	t.Parallel()
	const n = 40

	faults := map[string]struct {
		trigger string
		want    string // the SQLSTATE
		all     bool   // the class is one that mostly concerns no row
	}{
		"a check":                         {judging + `'23514')`, "23514", false},
		"a constraint that waits":         {atLast + `'23503')`, "23503", false},
		"a row that is silently ignored":  {judging + `'ignored')`, "", false},
		"a privilege that only some lack": {judging + `'42501')`, "42501", true},
		"a lock, asked for at the end":    {atLast + `'55P03')`, "55P03", true},
		"an error code of their own":      {judging + `'ZZ999')`, "ZZ999", false},
	}
	bad := map[string][]int{
		"none": {}, "the first": {0}, "the last": {39}, "one in the middle": {21}, "several": {3, 17, 18, 38}, "all": upTo(n),
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := database(t, fault.trigger)
			for which, bad := range bad {
				r := on(t, pool)
				r.Constraints = true
				reapertest.Exec(t, r.Tx, `insert into bad select unnest($1::int[])`, bad)

				require.NoError(t, r.Write(t.Context(), upTo(n)), which)

				require.Len(t, r.rejected, len(bad), which)
				for _, n := range bad {
					require.Equal(t, fault.want, pgtx.Code(r.rejected[n]), which)
				}
				require.Equal(t, fault.all && len(bad) == n, r.Blocked != nil, which)
				require.Equal(t, upTo(n, bad...), r.stored(t), which)
			}
		})
	}
}

// Trying a thousand items one by one would take a thousand exchanges.
func TestABadItemCostsFewExchanges(t *testing.T) {
	t.Parallel()
	pool := database(t, judging+`'23514')`)
	for bad, most := range map[int]int{0: 21, 511: 13, 1023: 12} {
		r := on(t, pool)
		reapertest.Exec(t, r.Tx, `insert into bad values ($1)`, bad)

		require.NoError(t, r.Write(t.Context(), upTo(1024)))

		require.Contains(t, r.rejected, bad)
		require.LessOrEqual(t, r.tries, most)
		require.Len(t, r.stored(t), 1023)
	}
}

// If the table is missing, the error concerns no item, and to try all of them would take
// long. Earlier writes of the transaction must be kept.
func TestWhatConcernsAllIsFoundSoon(t *testing.T) {
	t.Parallel()
	always, never := func(error) bool { return true }, func(error) bool { return false }

	tests := map[string]struct {
		code        string
		blocks      func(error) bool
		concernsAll func(error) bool
		tries       int
		blocked     bool
	}{
		"a class that mostly concerns all": {code: "42501", tries: 17, blocked: true},
		"it is known to":                   {code: "23514", blocks: always, tries: 1, blocked: true},
		"the caller suspects it":           {code: "23514", concernsAll: always, tries: 17, blocked: true},
		"the caller does not":              {code: "42501", concernsAll: never, tries: 199},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := open(t, judging+`'`+test.code+`')`)
			r.Blocks, r.ConcernsAll = test.blocks, test.concernsAll
			reapertest.Exec(t, r.Tx, `insert into things values (-1)`)
			reapertest.Exec(t, r.Tx, `insert into bad select generate_series(0, 99)`)

			require.NoError(t, r.Write(t.Context(), upTo(100)))

			require.Len(t, r.rejected, 100)
			require.Equal(t, test.tries, r.tries)
			require.Equal(t, test.blocked, r.Blocked != nil)
			require.Equal(t, []int{-1}, r.stored(t))
		})
	}
}
