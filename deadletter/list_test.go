package deadletter_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
)

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
	reapertest.Exec(t, pool, `update job_dead_letter set moved_at = '2026-03-01 13:00:00.123456+01' where job_kind = 'invoice'`)
	redriven := redriveAll(t, pool, deadletter.Filter{JobIDs: ids[1:]})
	reapertest.Exec(t, pool, `update job_dead_letter set job = '{"n": 9007199254740993, "x": 1.10}' where job_kind = 'invoice'`)
	by := operator

	for mode, pool := range reapertest.InEveryMode(t, pool) {
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
			reapertest.Exec(t, pool, `alter table job_dead_letter drop constraint job_dead_letter_pkey, drop column dead_letter_id,
				add column dead_letter_id `+test.key+` primary key`)
			reapertest.Exec(t, pool, `
insert into job_dead_letter (dead_letter_id, job_id, job_kind, attempts, max_attempts, final_error, moved_by, job, moved_at)
select `+test.ids+`, gen_random_uuid(), 'k', 5, 5, 'e', 'me', '{}',
  (array['-infinity', '4713-01-01 BC', '0001-06-01 BC', '2026-01-01', '2026-01-01 00:00:00.000001', '294276-12-31', 'infinity']::timestamptz[])[1 + i % 7]
from generate_series(1, 60) i`)
			want := reapertest.Column(t, pool, `select dead_letter_id::text from job_dead_letter d order by d.moved_at, d.dead_letter_id`)
			elsewhere := pgtest.Connect(t, pool, func(config *pgxpool.Config) {
				config.ConnConfig.RuntimeParams["timezone"] = "Asia/Kathmandu" // once 5:41:16 ahead
			})

			for mode, pool := range reapertest.InEveryMode(t, elsewhere) {
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
	reapertest.Exec(t, pool, `delete from job_dead_letter where job_id = any('{`+ids[2]+`,`+ids[3]+`}')`)
	require.Equal(t, ids[4:], jobsIn(list(t, pool, deadletter.Filter{After: page.Next}, 3)))
}

// A look must not wait for a redrive, nor hold it up, and must work on a standby.
func TestListOnlyReads(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a", "b")
	tx := reapertest.Begin(t, pool)
	reapertest.Exec(t, tx, `select from job_dead_letter for update`)
	reapertest.Exec(t, tx, `update job_dead_letter set redriven_by = 'me'`)
	readOnly := reapertest.WithSettings(t, pool, map[string]string{"default_transaction_read_only": "on"})
	before := reapertest.Contents(t, pool)

	require.Len(t, list(t, readOnly, deadletter.Filter{}, 10).Letters, 2)
	require.Equal(t, before, reapertest.Contents(t, pool))

	traced, recorder := reapertest.Recording(t, pool)
	require.Len(t, list(t, traced, deadletter.Filter{}, 10).Letters, 2)
	require.Contains(t, recorder.Statements(), reapertest.Sent{SQL: "begin isolation level read committed read only"})
}

// A column of texts takes anything. One letter that is no JSON must not hide the
// others of its page.
func TestALetterThatIsNoJSONIsShownAsAString(t *testing.T) {
	t.Parallel()
	pool, _ := openLetters(t, "a", "b")
	reapertest.Exec(t, pool, `alter table job_dead_letter alter column job type text`)
	reapertest.Exec(t, pool, `update job_dead_letter set job = '<job "a"/>' where job_kind = 'a'`)
	reapertest.Exec(t, pool, `update job_dead_letter set job = '{"x": "\u0000", "n": 1e200000}' where job_kind = 'b'`)

	page, err := deadletter.ListWithJobs(t.Context(), pool, deadletter.Store{}, deadletter.Filter{}, 10)

	require.NoError(t, err)
	require.JSONEq(t, `"<job \"a\"/>"`, string(page.Letters[0].Job))
	require.Contains(t, string(page.Letters[1].Job), `"\u0000", "n": 1e200000`)
}
