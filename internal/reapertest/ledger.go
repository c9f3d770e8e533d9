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

// SQLLedger makes the tables of a ledger. The transaction that claims, finishes or reaps a
// job also writes a row. So the rows show what was committed, also if the client did not
// receive the answer.
const SQLLedger = `
create table ledger_lease (   -- a worker's claim or renewal
	owner       text        not null, -- unique to one claim
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
	actor       text        not null, -- unique to one call
	at          timestamptz not null default now()
);
create index on ledger_reap (job_id);`

// sqlWriteReaps writes the reaps of an apply.
const sqlWriteReaps = `
insert into ledger_reap (owner, job_id, attempts, action, lease_until, actor)
select u.*, $6
from unnest($1::text[], $2::uuid[], $3::integer[], $4::text[], $5::timestamptz[]) u`

// ledgerFaults counts rows that must not exist after the workload.
var ledgerFaults = map[string]string{
	"a job is in an impossible state": `select count(*) from job_queue
		where state not in ('ready', 'retry_waiting', 'succeeded', 'dead_letter')
			or lease_owner is not null or lease_until is not null`,
	"attempts are not the number of committed reaps": `select count(*) from job_queue q
		where attempts <> (select count(*) from ledger_reap r where r.job_id = q.job_id)`,
	"an attempt was counted twice or not at all": `select count(*) from (
			select attempts, row_number() over (partition by job_id order by attempts, at) as n from ledger_reap
		) r where attempts <> n`,
	"a lease was reaped twice": `select count(*) from (
			select from ledger_reap group by owner, job_id having count(*) > 1) r`,
	"a lease was reaped before it expired": `select count(*) from ledger_reap where lease_until >= at`,
	"a lease was reaped that was renewed": `select count(*) from ledger_reap r
		where lease_until is distinct from (
			select max(l.lease_until) from ledger_lease l where l.owner = r.owner and l.job_id = r.job_id)`,
	"a lease was renewed after it was reaped": `select count(*) from ledger_reap r
		join ledger_lease l on l.owner = r.owner and l.job_id = r.job_id and l.lease_until >= r.at`,
	"a job was finished and reaped under the same lease": `select count(*) from ledger_reap r
		join ledger_finish f on f.owner = r.owner and f.job_id = r.job_id`,
	"a job succeeded and was not finished exactly once": `select count(*) from job_queue q
		where (state = 'succeeded')::integer <> (select count(*) from ledger_finish f where f.job_id = q.job_id)`,
	"a dead job has no dead letter, or another job has one": `select count(*) from job_queue q
		where (state = 'dead_letter')::integer <> (select count(*) from job_dead_letter d where d.job_id = q.job_id)`,
	"a dead letter has no job": `select count(*) from job_dead_letter d
		where not exists (select from job_queue q where q.job_id = d.job_id)`,
	"a dead letter's attempts are not the job's maximum": `select count(*)
		from job_dead_letter d join job_queue q on q.job_id = d.job_id
		where d.attempts <> q.max_attempts or q.attempts <> q.max_attempts or d.max_attempts <> q.max_attempts`,
	"a job was moved before its last attempt, or reset after it": `select count(*)
		from ledger_reap r join job_queue q on q.job_id = r.job_id
		where (action = 'moved_to_dead_letter') <> (r.attempts = q.max_attempts)`,
}

// WriteReaps is a Config.OnApply that writes the reaps of an apply to the ledger.
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

// CallLog has the results that the callers of a reaper received, by actor.
type CallLog struct {
	mu     sync.Mutex
	Actors map[string]*Reported
}

// Write records that a call reaped a number of jobs or returned an error. It ignores a call
// that certainly reaped nothing.
func (m *CallLog) Write(actor string, reaped int, err error) {
	if reaped == 0 && !IsUnknown(err) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	h := m.Actors[actor]
	if h == nil {
		h = &Reported{}
		m.Actors[actor] = h
	}
	h.reaped += reaped
	h.unknown = h.unknown || IsUnknown(err)
}

// compare returns the differences between the ledger and the callers' results, and how many
// calls of unknown outcome the ledger shows as committed.
func (m *CallLog) compare(ledger map[string]int) (faults []string, committed int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, actor := range slices.Sorted(maps.Keys(ledger)) {
		if m.Actors[actor] == nil {
			fault := fmt.Sprintf("%q received no result, and %d reaps were committed", actor, ledger[actor])
			faults = append(faults, fault)
		}
	}
	for actor, h := range m.Actors {
		switch n := ledger[actor]; {
		case n == h.reaped:
		case n > h.reaped && h.unknown:
			committed++
		default:
			faults = append(faults, fmt.Sprintf("%q received %d reaps, and %d were committed", actor, h.reaped, n))
		}
	}
	return faults, committed
}

// Reported is the sum of the results that the callers of one actor received.
type Reported struct {
	reaped  int
	unknown bool // some outcome is unknown, so more may have been reaped
}

// RequireLedgerAgrees compares the ledger with the queue, with itself and with the results
// that callers received.
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

// IsUnknown reports whether err leaves open if a call was committed.
func IsUnknown(err error) bool { return errors.Is(err, reaper.ErrOutcomeUnknown) }
