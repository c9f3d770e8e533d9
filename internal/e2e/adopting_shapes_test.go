package e2e_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
)

var outbox = reaper.Config{
	Queue: reaper.Table{
		Name: pgx.Identifier{"mail", "outbox"},
		Columns: reaper.Columns{
			JobID: "id", JobKind: "template", State: reaper.None, Attempts: "claims", MaxAttempts: reaper.None,
			ScheduledAt: "send_at", LeaseOwner: "claimed_by", LeaseUntil: "claimed_at", LastError: reaper.None,
			LostLeases: "lost_leases",
		},
		LeaseLength:   15 * time.Minute, // no mail takes longer
		TimesInUTC:    true,
		CountsAtClaim: true,
		MaxAttempts:   5,
		MaxLostLeases: 3,
		Only:          reaper.Set{"sent_at": nil},
		OnReset:       reaper.Set{"gave_up_at": nil},
		OnMove:        reaper.Set{"gave_up_at": reaper.Now},
	},
	DeadLetter:  deadletter.InPlace{},
	KindBackoff: map[string]backoff.Policy{"login_code": backoff.PolicyFunc(atOnce)},
}

// atOnce sends a lost mail again without a wait: nobody needs a login code later.
func atOnce(int, int64) int64 { return 0 }

// gaveUp are the dead mails, for deadletter.List, Redrive and Purge.
var gaveUp = deadletter.Store{Queue: outbox.Queue.DeadLetterQueue(), InPlace: true, MovedAt: "gave_up_at"}

var farm = reaper.Config{
	Queue: reaper.Table{
		Name:        pgx.Identifier{"farm", "job_queue"},
		Columns:     reaper.Columns{JobID: "id", JobKind: "kind", LeaseOwner: "node", LeaseUntil: "seen_at"},
		LeaseLength: time.Minute, // a node that was not seen for a minute is dead
		OnReset:     reaper.Set{"seen_at": reaper.Keep},
		OnMove:      reaper.Set{"seen_at": reaper.Keep},
	},
	DeadLetter: deadletter.InPlace{},
}

// openShape is a database with the SQL blocks of the page that say so, and a reaper with
// open gates. Its sessions are in a zone that is far from UTC.
func openShape(t *testing.T, cfg reaper.Config, blocks ...string) (*pgxpool.Pool, reaper.Config) {
	t.Helper()
	pool := reapertest.WithSettings(t, pgtest.Empty(t), map[string]string{"timezone": "Asia/Tokyo"})
	for _, block := range blocks {
		reapertest.Exec(t, pool, block)
	}
	cfg.Gates = reapertest.OpenGate
	return pool, cfg
}

// claimMail claims a mail by the page's claim, as a worker does whose claim was so long ago.
func claimMail(t *testing.T, pool *pgxpool.Pool, claim, ago string) (id, claims int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), claim, "worker").Scan(&id, &claims))
	reapertest.Exec(t, pool, `update mail.outbox set claimed_at = claimed_at - $2::interval where id = $1`, id, ago)
	return id, claims
}

// An adopter copies the page's mapping of a queue without states and without ends, and
// live, sent or dead mails are sent again, or a deployment costs a mail an attempt.
func TestTheAdoptersOutboxIsReaped(t *testing.T) {
	t.Parallel()
	blocks := reapertest.Fenced(t, "docs/adopting.md", "sql")
	claim := blocks[9]
	pool, cfg := openShape(t, outbox, blocks[8])
	r := reapertest.New(t, pool, cfg)
	reapertest.Exec(t, pool, `insert into mail.outbox (template, claimed_at, sent_at)
		values ('sent', 'epoch', 'epoch'), ('live', now() at time zone 'utc' - interval '14 minutes', null)`)
	reapertest.Exec(t, pool, `insert into mail.outbox (template) values ('login_code')`)

	for lost := 1; lost < 3; lost++ {
		id, claims := claimMail(t, pool, claim, "16 minutes")
		require.Equal(t, []int{3, 1}, []int{id, claims}, "a lost lease gives the attempt back")
		require.Equal(t, 1, reapertest.Apply(t, r, 10).ResetCount)
		require.Equal(t, []int{0, lost}, reapertest.One[[]int](t, pool,
			`select array[claims, lost_leases] from mail.outbox where id = 3`))
	}
	claimMail(t, pool, claim, "16 minutes")
	require.Equal(t, 1, reapertest.Apply(t, r, 10).DeadLetterCount)
	require.ErrorIs(t, pool.QueryRow(t.Context(), claim, "worker").Scan(), pgx.ErrNoRows, "a dead mail is claimed")

	result, err := deadletter.Redrive(t.Context(), pool, gaveUp, "operator", deadletter.Filter{}, 10)
	require.NoError(t, err)
	require.Equal(t, 1, result.RedrivenCount)
	id, _ := claimMail(t, pool, claim, "0")
	require.Equal(t, 3, id)
}

// joined is the view that the page warns of, with the trigger that it needs.
const joined = `
drop view farm.job_queue;
create view farm.job_queue as
select t.*, n.seen_at from farm.tasks t join farm.nodes n on n.name = t.node;
create function farm.write() returns trigger language plpgsql as $$
begin
  update farm.tasks
  set state = new.state, attempts = new.attempts, scheduled_at = new.scheduled_at, node = new.node, last_error = new.last_error
  where id = new.id;
  return new;
end $$;
create trigger write instead of update on farm.job_queue for each row execute function farm.write()`

// A reaper that has a job of a node keeps all others from that node's jobs, and the node
// from its heartbeat, if the view joins the heartbeats. With a subquery it does not.
func TestAJoinInAViewHoldsUpOtherReapers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		view   string
		others int
		renews bool
	}{
		"a subquery locks jobs alone":   {"", 2, true},
		"a join locks the node as well": {joined, 0, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, cfg := openShape(t, farm, reapertest.Fenced(t, "docs/adopting.md", "sql")[10], test.view)
			reapertest.Exec(t, pool, `insert into farm.nodes values ('dead', now() - interval '61 s'), ('alive', now() - interval '50 s')`)
			reapertest.Exec(t, pool, `insert into farm.tasks (kind, state, node)
				select 'grow', 'leased', name from farm.nodes, generate_series(1, 3)`)
			first := reapertest.Begin(t, pool)

			require.Equal(t, 1, reapertest.Apply(t, reapertest.New(t, first, cfg), 1).ResetCount)
			require.Equal(t, test.others, reapertest.Apply(t, reapertest.New(t, pool, cfg), 10).ResetCount)
			require.Equal(t, test.renews, reapertest.One[bool](t, pool, `select exists (
				select from farm.nodes where name = 'dead' for update skip locked)`))
			require.NoError(t, first.Commit(t.Context()))
			require.Equal(t, 3, reapertest.One[int](t, pool, `select count(*) from farm.tasks where state = 'leased' and node = 'alive'`))
		})
	}
}

// A node whose row is gone is a dead one, whose jobs would otherwise never come back.
func TestAJobOfANodeThatIsGoneIsReaped(t *testing.T) {
	t.Parallel()
	pool, cfg := openShape(t, farm, reapertest.Fenced(t, "docs/adopting.md", "sql")[10])
	reapertest.Exec(t, pool, `insert into farm.tasks (kind, state, node, attempts) values ('grow', 'leased', 'gone', 0), ('grow', 'leased', 'gone', 4)`)

	result := reapertest.Apply(t, reapertest.New(t, pool, cfg), 10)

	require.Equal(t, []int{1, 1}, []int{result.ResetCount, result.DeadLetterCount})
}

// A grace in the place of a length is forgotten, and every running job is planned. With
// the length in the mapping, nobody has to remember it.
func TestALengthIsNotForgottenLikeAGrace(t *testing.T) {
	t.Parallel()
	pool := reapertest.OpenQueue(t)
	reapertest.Exec(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values ('live', 'leased', 'w', now() - interval '1 minute'), ('lost', 'leased', 'w', now() - interval '16 minutes')`)
	tests := map[string]struct {
		cfg   reaper.Config
		stale int
	}{
		"a length":          {reaper.Config{Queue: reaper.Table{LeaseLength: 15 * time.Minute}}, 1},
		"a grace":           {reaper.Config{Grace: 15 * time.Minute}, 1},
		"a forgotten grace": {reaper.Config{}, 2},
	}
	for name, test := range tests {
		dryRun, err := reapertest.New(t, pool, test.cfg).DryRun(t.Context(), 10)
		require.NoError(t, err)
		require.Equal(t, test.stale, dryRun.StaleLeaseCount, name)
	}
}
