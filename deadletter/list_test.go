package deadletter_test

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

func list(t *testing.T, db deadletter.DB, filter deadletter.Filter, limit int) *deadletter.Page {
	t.Helper()
	page, err := deadletter.List(t.Context(), db, deadletter.Store{}, filter, limit)
	require.NoError(t, err)
	return page
}

// jobsIn returns the jobs of a page's letters.
func jobsIn(page *deadletter.Page) []string {
	ids := []string{}
	for _, letter := range page.Letters {
		ids = append(ids, letter.JobID)
	}
	return ids
}

// What an operator reads has to be what is stored, and a payload is nothing for a
// terminal unless it was asked for.
func TestListShowsWhatIsStored(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "invoice", "mail")
	execute(t, pool, `update job_dead_letter set moved_at = '2026-03-01 13:00:00.123456+01' where job_kind = 'invoice'`)
	redriven := redriveAll(t, pool, deadletter.Filter{JobIDs: ids[1:]})
	execute(t, pool, `update job_dead_letter set job = '{"n": 9007199254740993, "x": 1.10}' where job_kind = 'invoice'`)
	by := operator

	for mode, pool := range inEveryMode(t, pool) {
		page := list(t, pool, deadletter.Filter{}, 10)
		require.Equal(t, 10, page.Limit, mode)
		require.WithinDuration(t, time.Now(), page.EvaluatedAt, time.Hour, mode)
		require.Empty(t, page.Next, mode)
		require.Len(t, page.Letters, 2, mode)
		require.Equal(t, deadletter.Letter{
			DeadLetterID: letterOf(t, pool, ids[0]), JobID: ids[0], JobKind: "invoice", Attempts: 5, MaxAttempts: 5,
			FinalError: reaperError, MovedBy: actor, MovedAt: time.Date(2026, 3, 1, 12, 0, 0, 123456000, time.UTC),
		}, page.Letters[0], mode)
		require.Equal(t, &redriven.RedrivenAt, page.Letters[1].RedrivenAt, mode)
		require.Equal(t, &by, page.Letters[1].RedrivenBy, mode)

		page, err := deadletter.ListWithJobs(t.Context(), pool, deadletter.Store{}, deadletter.Filter{}, 1)
		require.NoError(t, err, mode)
		require.Equal(t, `{"n": 9007199254740993, "x": 1.10}`, string(page.Letters[0].Job), mode)
	}
}

const reaperError = "lease_expired_reaped_at_max_attempts"

// A filter that lets too much through redrives what nobody wanted to.
func TestFilterLetsThroughWhatItNames(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, "a", "b", "c", "it's {job_id} $1", "") // 5 to 1 hours old
	execute(t, pool, `update job_dead_letter set final_error = 'Timeout: 100% of {queue} _' where job_kind in ('a', 'b')`)
	redriveAll(t, pool, deadletter.Filter{JobIDs: ids[1:2]})
	letters := make([]string, len(ids))
	for i, id := range ids {
		letters[i] = letterOf(t, pool, id)
	}
	pools := inEveryMode(t, pool)

	tests := map[string]struct {
		filter deadletter.Filter
		want   []int // the places of the letters
	}{
		"nothing":                {deadletter.Filter{}, []int{0, 1, 2, 3, 4}},
		"ids":                    {deadletter.Filter{IDs: []string{letters[3], letters[0]}}, []int{0, 3}},
		"ids in another form":    {deadletter.Filter{IDs: []string{"{" + strings.ToUpper(letters[3]) + "}"}}, []int{3}},
		"the same id twice":      {deadletter.Filter{IDs: []string{letters[3], letters[3]}}, []int{3}},
		"an id of nobody":        {deadletter.Filter{IDs: []string{ids[0]}}, nil},
		"no ids":                 {deadletter.Filter{IDs: []string{}}, nil},
		"jobs":                   {deadletter.Filter{JobIDs: ids[1:3]}, []int{1, 2}},
		"no jobs":                {deadletter.Filter{JobIDs: []string{}}, nil},
		"kinds":                  {deadletter.Filter{Kinds: []string{"a", "c", "nobody's"}}, []int{0, 2}},
		"an odd kind":            {deadletter.Filter{Kinds: []string{"it's {job_id} $1"}}, []int{3}},
		"the empty kind":         {deadletter.Filter{Kinds: []string{""}}, []int{4}},
		"no kinds":               {deadletter.Filter{Kinds: []string{}}, nil},
		"a part of the error":    {deadletter.Filter{ErrorContains: "100% of {queue} _"}, []int{0, 1}},
		"no pattern of an error": {deadletter.Filter{ErrorContains: "%"}, []int{0, 1}},
		"the error's case":       {deadletter.Filter{ErrorContains: "timeout"}, nil},
		"older":                  {deadletter.Filter{OlderThan: 210 * time.Minute}, []int{0, 1}},
		"younger":                {deadletter.Filter{YoungerThan: 210 * time.Minute}, []int{2, 3, 4}},
		"between":                {deadletter.Filter{OlderThan: 90 * time.Minute, YoungerThan: 210 * time.Minute}, []int{2, 3}},
		"older than all time":    {deadletter.Filter{OlderThan: 1<<63 - 1}, nil},
		"redriven":               {deadletter.Filter{Status: deadletter.StatusRedriven}, []int{1}},
		"unredriven":             {deadletter.Filter{Status: deadletter.StatusUnredriven}, []int{0, 2, 3, 4}},
		"all that there is, at once": {
			deadletter.Filter{
				IDs: letters, JobIDs: ids, Kinds: []string{"a", "b"}, ErrorContains: "Time", OlderThan: 1, YoungerThan: 99 * time.Hour,
				Status: deadletter.StatusUnredriven, After: "-infinity/" + letters[0],
			}, []int{0},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := []string{}
			for _, i := range test.want {
				want = append(want, ids[i])
			}
			for mode, pool := range pools {
				require.Equal(t, want, jobsIn(list(t, pool, test.filter, 10)), mode)
			}
		})
	}
}

// Letters of one apply have one moved_at. A page that ends among them, or at a
// time that the calendar has no form for, must not lose or repeat any.
func TestPagesHoldEveryLetterOnce(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		key string
		ids string // SQL over i
	}{
		"uuid":   {"uuid default gen_random_uuid()", "gen_random_uuid()"},
		"bigint": {"bigint", "i::bigint * 1000000007 % 97 - 50"},
		"text":   {"text", "repeat('/', i % 3) || ' \"a,{}' || i"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := pgtest.New(t)
			execute(t, pool, `alter table job_dead_letter drop constraint job_dead_letter_pkey, drop column dead_letter_id,
				add column dead_letter_id `+test.key+` primary key`, `
insert into job_dead_letter (dead_letter_id, job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select `+test.ids+`, gen_random_uuid(), 'k', 5, 5, 'e', 'me', '{}',
  (array['-infinity', '4713-01-01 BC', '0001-06-01 BC', '2026-01-01', '2026-01-01 00:00:00.000001', '294276-12-31', 'infinity']::timestamptz[])[1 + i % 7]
from generate_series(1, 60) i`)
			want := column(t, pool, `select dead_letter_id::text from job_dead_letter d order by d.moved_at, d.dead_letter_id`)
			elsewhere := pgtest.Connect(t, pool, func(config *pgxpool.Config) {
				config.ConnConfig.RuntimeParams["timezone"] = "Asia/Kathmandu" // once 5:41:16 ahead
			})

			for mode, pool := range inEveryMode(t, elsewhere) {
				var got []string
				filter := deadletter.Filter{}
				for {
					page := list(t, pool, filter, 7)
					for _, letter := range page.Letters {
						got = append(got, letter.DeadLetterID)
						require.True(t, 1 <= letter.MovedAt.Year() && letter.MovedAt.Year() <= 9999)
					}
					if filter.After = page.Next; page.Next == "" {
						break
					}
				}
				require.Equal(t, want, got, mode)
			}
		})
	}
}

// Letters come and go while an operator pages through them.
func TestPagesGoOnWhereTheLastLetterIsGone(t *testing.T) {
	t.Parallel()
	pool, ids := openLetters(t, many(6)...)

	page := list(t, pool, deadletter.Filter{}, 3)
	require.Equal(t, ids[:3], jobsIn(page))
	execute(t, pool, `delete from job_dead_letter where job_id = any('{`+ids[2]+`,`+ids[3]+`}')`)
	require.Equal(t, ids[4:], jobsIn(list(t, pool, deadletter.Filter{After: page.Next}, 3)))
}

// A look must not wait for a redrive, nor hold it up, and must work on a standby.
func TestListOnlyReads(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a", "b")
	tx := begin(t, pool)
	execute(t, tx, `select from job_dead_letter for update`, `update job_dead_letter set redriven_by = 'me'`)
	readOnly := pgtest.Connect(t, pool, func(config *pgxpool.Config) {
		config.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	})
	before := fingerprint(t, pool)

	require.Len(t, list(t, readOnly, deadletter.Filter{}, 10).Letters, 2)
	require.Equal(t, before, fingerprint(t, pool))

	recorder := &recorder{}
	traced := pgtest.Connect(t, pool, func(config *pgxpool.Config) { config.ConnConfig.Tracer = recorder })
	require.Len(t, list(t, traced, deadletter.Filter{}, 10).Letters, 2)
	require.Contains(t, recorder.statements, "begin isolation level read committed read only")
}

// A collation that ignores case knows no part of a text, and takes kinds for equal
// that are not.
func TestAFilterComparesTextsAsTheyAre(t *testing.T) {
	t.Parallel()
	const changed = `
create extension if not exists citext;
create type sort as enum ('a', 'A', 'b');
create collation loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
alter table job_dead_letter `

	tests := map[string]struct{ change string }{
		"a collation": {changed + `alter column job_kind type text collate loose, alter column final_error type text collate loose`},
		"citext":      {changed + `alter column job_kind type citext, alter column final_error type citext`},
		"an enum":     {changed + `alter column job_kind type sort using job_kind::sort`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, ids := openLetters(t, "a", "A", "b")
			execute(t, pool, `update job_dead_letter set final_error = 'Timeout' where job_kind <> 'b'`, test.change)

			require.Equal(t, ids[:1], jobsIn(list(t, pool, deadletter.Filter{Kinds: []string{"a"}}, 10)))
			require.Equal(t, ids[:2], jobsIn(list(t, pool, deadletter.Filter{ErrorContains: "Time"}, 10)))
			require.Empty(t, jobsIn(list(t, pool, deadletter.Filter{ErrorContains: "time", Kinds: []string{"a", "A"}}, 10)))
			require.Equal(t, ids[1:2], jobsOf(redriveAll(t, pool, deadletter.Filter{Kinds: []string{"A"}, ErrorContains: "T"})))
		})
	}
}

// A column of texts takes anything. One letter that is no JSON must not hide the
// others of its page.
func TestALetterThatIsNoJSONIsShownAsAString(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a", "b")
	execute(t, pool, `alter table job_dead_letter alter column job type text`,
		`update job_dead_letter set job = '<job "a"/>' where job_kind = 'a'`,
		`update job_dead_letter set job = '{"x": "\u0000", "n": 1e200000}' where job_kind = 'b'`)

	page, err := deadletter.ListWithJobs(t.Context(), pool, deadletter.Store{}, deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.JSONEq(t, `"<job \"a\"/>"`, string(page.Letters[0].Job))
	require.Equal(t, `{"x": "\u0000", "n": 1e200000}`, string(page.Letters[1].Job))
}
