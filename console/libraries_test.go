package console_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/console"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// library is a queue as a library has it, in a table called jobs with three stale leases,
// one of which an apply moves, one lease that ends in ten minutes, and two dead jobs with
// the ids 5 and 6.
type library struct {
	ddl, movedAt string
	maximum      int64  // of the attempts of a dead job
	dead, reset  string // what the console calls the state of a dead job, and of a reset one
	table        reaper.Table
}

// libraries are the queues of the tests.
var libraries = map[string]library{
	"River, with integers for states": {
		ddl: `create table jobs (id bigint generated always as identity primary key, kind text not null, state smallint not null,
				attempt smallint not null, max_attempts smallint not null default 25, attempted_at timestamptz,
				attempted_by text[], scheduled_at timestamptz not null default now(), finalized_at timestamptz);
			create index on jobs (attempted_at) where state = 1;
			insert into jobs (kind, state, attempt, attempted_at, attempted_by, finalized_at)
			select 'mail', s, a, now() - m::interval, '{w}', now() - f::interval
			from (values (1, 1, '2 h', null), (1, 1, '3 h', null), (1, 25, '4 h', null), (1, 1, '50 min', null),
				(3, 25, '9 h', '8 h'), (3, 25, '9 h', '8 h')) _(s, a, m, f)`,
		movedAt: "finalized_at", maximum: 25, dead: "3", reset: "2",
		table: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "kind", Attempts: "attempt", LeaseUntil: "attempted_at",
				LeaseOwner: "attempted_by", LastError: reaper.None},
			States:      reaper.States{Leased: "1", RetryWaiting: "2", DeadLetter: "3"},
			LeaseLength: time.Hour, CountsAtClaim: true,
			OnReset: reaper.Set{"attempted_at": reaper.Keep, "attempted_by": reaper.Keep, "finalized_at": nil},
			OnMove:  reaper.Set{"attempted_at": reaper.Keep, "attempted_by": reaper.Keep, "finalized_at": reaper.Now},
		},
	},
	"delayed_job": {
		ddl: `create table jobs (id bigint generated always as identity primary key, attempts int not null, last_error text,
				run_at timestamp default (now() at time zone 'utc'), locked_at timestamp, failed_at timestamp, locked_by varchar, queue varchar);
			create index on jobs (locked_at);
			insert into jobs (attempts, locked_at, failed_at, locked_by, queue)
			select a, now() at time zone 'utc' - m::interval, now() at time zone 'utc' - f::interval, 'host', 'mail'
			from (values (1, '5 h', null), (1, '6 h', null), (24, '7 h', null), (1, '230 min', null),
				(25, null, '8 h'), (25, null, '8 h')) _(a, m, f)`,
		movedAt: "failed_at", maximum: 25, dead: "dead", reset: "waiting",
		table: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "queue", State: reaper.None, MaxAttempts: reaper.None,
				ScheduledAt: "run_at", LeaseUntil: "locked_at", LeaseOwner: "locked_by"},
			LeaseLength: 4 * time.Hour, MaxAttempts: 25, TimesInUTC: true, Only: reaper.Set{"failed_at": nil},
			OnReset: reaper.Set{"failed_at": nil}, OnMove: reaper.Set{"failed_at": reaper.Now},
		},
	},
	"pg-boss, without a time of the move": {
		ddl: `create table jobs (id bigint generated always as identity primary key, name text not null, state text not null,
				retry_limit int not null default 2, retry_count int not null, expire_seconds int not null default 900,
				start_after timestamptz not null default now(), started_on timestamptz);
			insert into jobs (name, state, retry_count, started_on)
			select 'mail', s, a, now() - m::interval
			from (values ('active', 1, '1 h'), ('active', 1, '2 h'), ('active', 3, '3 h'), ('active', 1, '5 min'),
				('failed', 3, '9 h'), ('failed', 3, '9 h')) _(s, a, m)`,
		maximum: 3, dead: "failed", reset: "retry",
		table: reaper.Table{
			Columns: reaper.Columns{JobID: "id", JobKind: "name", Attempts: "retry_count", MaxAttempts: "retry_limit",
				ScheduledAt: "start_after", LeaseUntil: "started_on", LeaseSeconds: "expire_seconds",
				LeaseOwner: reaper.None, LastError: reaper.None},
			States:        reaper.States{Leased: "active", RetryWaiting: "retry", DeadLetter: "failed"},
			CountsAtClaim: true, ExtraAttempts: 1, OnReset: reaper.Set{"started_on": reaper.Keep},
			OnMove: reaper.Set{"started_on": reaper.Keep},
		},
	},
}

// open is a console over the queue. The sessions are in a zone that is far from UTC.
func (l library) open(t *testing.T) (http.Handler, *pgxpool.Pool) {
	t.Helper()
	pool := pgtest.Connect(t, pgtest.Empty(t), func(cfg *pgxpool.Config) {
		cfg.ConnConfig.RuntimeParams["timezone"] = "Asia/Tokyo"
	})
	_, err := pool.Exec(t.Context(), l.ddl)
	require.NoError(t, err)
	l.table.Name = pgx.Identifier{"jobs"}
	d := console.Database{Name: "shop", Look: pool, Act: pool, Reaper: reaper.Config{
		Queue: l.table, DeadLetter: deadletter.InPlace{},
		Gates: gates.Static{SubstrateEnabled: true, ReaperEnabled: true, DryRunOnly: false},
	}}
	if l.movedAt != "" {
		d.Letters = &deadletter.Store{Queue: l.table.DeadLetterQueue(), InPlace: true, MovedAt: l.movedAt}
	}
	return handler(t, console.Config{Access: as("alice", console.LevelGates), ShowPayloads: true, Databases: []console.Database{d}}), pool
}

// shown is what the pages say as JSON.
type shown struct {
	DryRun       reaper.DryRunResult `json:"dry_run"`
	NextExpiries []struct {
		JobID      string    `json:"job_id"`
		LeaseUntil time.Time `json:"lease_until"`
		Seconds    float64
	} `json:"next_expiries"`
	DeadLetters struct{ Letters, Unredriven int } `json:"dead_letters"`

	Letters  []deadletter.Letter
	Letter   deadletter.Letter
	QueueRow struct {
		State       string
		MaxAttempts int64      `json:"max_attempts"`
		LeaseUntil  *time.Time `json:"lease_until"`
		ScheduledAt time.Time  `json:"scheduled_at"`
	} `json:"queue_row"`
	Skipped []struct{ State string }
}

func show(t *testing.T, h http.Handler, page string) (s shown) {
	t.Helper()
	got := get(t, h, page, "Accept", asJSON)
	require.Equal(t, http.StatusOK, got.StatusCode, got.body)
	require.NoError(t, json.Unmarshal([]byte(got.body), &s), got.body)
	return s
}

// A lease that is said to end hours too early, or a dead job that is not shown, sends the
// operator of another library's queue the wrong way.
func TestTheQueuesOfOtherLibraries(t *testing.T) {
	t.Parallel()
	for name, l := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := l.open(t)
			for _, page := range append([]string{"/shop/letter?id=5"}, lookPages...) {
				want := http.StatusOK
				if page == "/shop/purge?older=1d" && l.movedAt == "" {
					want = http.StatusBadRequest // there is no age
				}
				got := get(t, h, page)
				require.Equal(t, want, got.StatusCode, "%s: %s", page, got.body)
			}
			s := show(t, h, "/shop/overview")
			require.Equal(t, 3, s.DryRun.StaleLeaseCount)
			require.Equal(t, reaper.WouldMove, s.DryRun.Jobs[0].WouldAction)
			require.Len(t, s.NextExpiries, 1)
			require.InDelta(t, 600, s.NextExpiries[0].Seconds, 30)
			require.WithinDuration(t, time.Now().Add(10*time.Minute), s.NextExpiries[0].LeaseUntil, time.Minute)
			require.Equal(t, 2, s.DeadLetters.Letters)

			letter := show(t, h, "/shop/letter?id=5")
			require.Equal(t, l.dead, letter.QueueRow.State)
			require.Equal(t, l.maximum, letter.QueueRow.MaxAttempts)
			require.EqualValues(t, l.maximum, letter.Letter.MaxAttempts)
			require.Nil(t, letter.QueueRow.LeaseUntil, "it is not leased")
			require.WithinDuration(t, time.Now(), letter.QueueRow.ScheduledAt, time.Minute)
			require.NotEmpty(t, letter.Letter.Job)
			if l.movedAt != "" {
				require.WithinDuration(t, time.Now().Add(-8*time.Hour), letter.Letter.MovedAt, time.Minute)
			}
		})
	}
}

// What is done from the console must reach the rows that are the letters, and only those.
func TestActingOnTheQueuesOfOtherLibraries(t *testing.T) {
	t.Parallel()
	for name, l := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, pool := l.open(t)
			_, form := planned(t, h)
			var result reaper.ApplyResult
			require.NoError(t, json.Unmarshal([]byte(post(t, h, "/shop/plan", form, "Accept", asJSON).body), &result))
			require.Equal(t, 2, result.ResetCount)
			require.Equal(t, 1, result.DeadLetterCount)
			require.Len(t, show(t, h, "/shop/letters").Letters, 3, "the moved one is a letter at once")

			require.Len(t, show(t, h, "/shop/redrive").Letters, 3)
			require.Empty(t, show(t, h, "/shop/redrive").Skipped)
			got := post(t, h, "/shop/redrive", url.Values{"id": {"5"}})
			require.Contains(t, got.body, "1 job is back in the queue", got.body)
			require.Equal(t, http.StatusNotFound, get(t, h, "/shop/letter?id=5").StatusCode, "it is no letter any more")

			require.Len(t, show(t, h, "/shop/purge").Letters, 2)
			require.Contains(t, get(t, h, "/shop/purge").body, `id="word"`)
			require.Equal(t, http.StatusBadRequest, post(t, h, "/shop/purge", url.Values{"id": {"6"}}).StatusCode, "the word is missing")
			got = post(t, h, "/shop/purge", url.Values{"id": {"6"}, "word": {"purge"}})
			require.Equal(t, http.StatusOK, got.StatusCode, got.body)
			require.Equal(t, 5, one[int](t, pool, "select count(*) from jobs"))
			require.Equal(t, 0, one[int](t, pool, "select count(*) from jobs where id = 6"))
		})
	}
}

// A form that offers what cannot be answered wastes the time of the one who tries it.
func TestFormsOfferWhatLettersInPlaceHave(t *testing.T) {
	t.Parallel()
	for name, l := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, _ := l.open(t)
			page := get(t, h, "/shop/letters").body
			require.NotContains(t, page, `name="status"`, "none was redriven")
			require.NotContains(t, page, `name="unredriven"`)
			if l.movedAt == "" {
				require.NotContains(t, page, `name="older"`)
			} else {
				require.Contains(t, page, `name="older"`)
			}
		})
	}
}
