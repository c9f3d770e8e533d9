package reapertest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
)

// SQLLedger makes the tables of a ledger. Each row is written by the transaction
// that does what the row says, so what is in them is what was committed, whatever
// a client heard of it.
const SQLLedger = `
create table ledger_lease (   -- a claim of a worker's, or a renewal
	owner       text        not null, -- of one claim, no other
	job_id      uuid        not null,
	attempts    integer     not null,
	lease_until timestamptz not null,
	at          timestamptz not null default now()
);
create index on ledger_lease (job_id, owner);
create table ledger_finish (
	owner       text        not null,
	job_id      uuid        not null,
	at          timestamptz not null default now()
);
create index on ledger_finish (job_id);
create table ledger_reap (
	owner       text        not null,
	job_id      uuid        not null,
	attempts    integer     not null,
	action      text        not null,
	lease_until timestamptz not null,
	actor       text        not null, -- of one call, no other
	at          timestamptz not null default now()
);
create index on ledger_reap (job_id);`

// sqlWriteReaps is for Config.OnApply.
const sqlWriteReaps = `
insert into ledger_reap (owner, job_id, attempts, action, lease_until, actor)
select u.*, $6
from unnest($1::text[], $2::uuid[], $3::integer[], $4::text[], $5::timestamptz[]) u`

// ledgerFaults counts the rows that must not be there when all is over.
var ledgerFaults = map[string]string{
	"a job is in no place that it can be in": `select count(*) from job_queue
		where state not in ('ready', 'retry_waiting', 'succeeded', 'dead_letter')
			or lease_owner is not null or lease_until is not null`,
	"attempts are not the number of committed reaps": `select count(*) from job_queue q
		where attempts <> (select count(*) from ledger_reap r where r.job_id = q.job_id)`,
	"a try was counted twice or left out": `select count(*) from (
			select attempts, row_number() over (partition by job_id order by attempts, at) as n from ledger_reap
		) r where attempts <> n`,
	"a lease was reaped twice": `select count(*) from (
			select from ledger_reap group by owner, job_id having count(*) > 1) r`,
	"a lease was reaped before its end": `select count(*) from ledger_reap where lease_until >= at`,
	"a lease was reaped that was renewed": `select count(*) from ledger_reap r
		where lease_until is distinct from (
			select max(l.lease_until) from ledger_lease l where l.owner = r.owner and l.job_id = r.job_id)`,
	"a lease was renewed after it was reaped": `select count(*) from ledger_reap r
		join ledger_lease l on l.owner = r.owner and l.job_id = r.job_id and l.lease_until >= r.at`,
	"a job was finished and reaped under the same lease": `select count(*) from ledger_reap r
		join ledger_finish f on f.owner = r.owner and f.job_id = r.job_id`,
	"a job has succeeded and nobody, or more than one, finished it": `select count(*) from job_queue q
		where (state = 'succeeded')::integer <> (select count(*) from ledger_finish f where f.job_id = q.job_id)`,
	"a dead job has no dead letter, or a living one has": `select count(*) from job_queue q
		where (state = 'dead_letter')::integer <> (select count(*) from job_dead_letter d where d.job_id = q.job_id)`,
	"a dead letter has no job": `select count(*) from job_dead_letter d
		where not exists (select from job_queue q where q.job_id = d.job_id)`,
	"a dead letter has another number of attempts than its job may have": `select count(*)
		from job_dead_letter d join job_queue q on q.job_id = d.job_id
		where d.attempts <> q.max_attempts or q.attempts <> q.max_attempts or d.max_attempts <> q.max_attempts`,
	"a job was moved before its last try, or reset after it": `select count(*)
		from ledger_reap r join job_queue q on q.job_id = r.job_id
		where (action = 'moved_to_dead_letter') <> (r.attempts = q.max_attempts)`,
}

// WriteReaps is a Config.OnApply that writes the ledger.
func WriteReaps(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
	n := len(result.Actions)
	owners, ids, actions := make([]string, n), make([]string, n), make([]string, n)
	attempts, ends := make([]int, n), make([]time.Time, n)
	for i, a := range result.Actions {
		owners[i], ids[i], attempts[i], actions[i], ends[i] = a.LeaseOwner, a.JobID, a.Attempts, a.Action, a.LeaseUntil
	}
	_, err := tx.Exec(ctx, sqlWriteReaps, owners, ids, attempts, actions, ends, result.Actor)
	return err
}

// CallLog is what the callers of a reaper heard: how many jobs it settled, by actor.
type CallLog struct {
	mu     sync.Mutex
	Actors map[string]*Reported
}

// Write notes what a call came to. Of a call that did nothing, for all that its
// caller knows, there is nothing to note.
func (m *CallLog) Write(actor string, settled int, err error) {
	if settled == 0 && !IsUnknown(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.Actors[actor]
	if h == nil {
		h = &Reported{}
		m.Actors[actor] = h
	}
	h.settled += settled
	h.unknown = h.unknown || IsUnknown(err)
}

// compare returns where the ledger and the callers differ, and how many calls of
// unknown outcome had, as the ledger shows, been committed.
func (m *CallLog) compare(ledger map[string]int) (faults []string, committed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, actor := range slices.Sorted(maps.Keys(ledger)) {
		if m.Actors[actor] == nil {
			fault := fmt.Sprintf("%q heard of nothing, and %d reaps were committed", actor, ledger[actor])
			faults = append(faults, fault)
		}
	}
	for actor, h := range m.Actors {
		switch n := ledger[actor]; {
		case n == h.settled:
		case n > h.settled && h.unknown:
			committed++
		default:
			faults = append(faults, fmt.Sprintf("%q heard of %d reaps, and %d were committed", actor, h.settled, n))
		}
	}
	return faults, committed
}

// Reported is what the callers of one actor heard.
type Reported struct {
	settled int
	unknown bool // and perhaps more
}

// RequireLedgerAgrees compares the ledger with the queue, with itself and with
// what callers heard.
func RequireLedgerAgrees(t *testing.T, db Execer, m *CallLog) (committed int) {
	t.Helper()
	found := map[string]int{}
	for name, sql := range ledgerFaults {
		if n := One[int](t, db, sql); n > 0 {
			found[name] = n
		}
	}
	require.Empty(t, found)

	rows, err := db.Query(t.Context(), `select actor, count(*) from ledger_reap group by actor`)
	require.NoError(t, err)
	ledger := map[string]int{}
	var actor string
	var n int
	_, err = pgx.ForEachRow(rows, []any{&actor, &n}, func() error {
		ledger[actor] = n
		return nil
	})
	require.NoError(t, err)
	faults, committed := m.compare(ledger)
	require.Empty(t, faults)
	return committed
}

// IsUnknown reports whether nobody can know if a call was committed.
func IsUnknown(err error) bool { return errors.Is(err, reaper.ErrOutcomeUnknown) }
