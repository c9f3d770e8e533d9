package reaper

import (
	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/letter"
)

// sqlClock reads the transaction's clock, and whether the session writes values in plain
// forms.
const sqlClock = `now(), ` + letter.SQLIsPlain

// sqlLockTimeout bounds how long the statements of a transaction wait for a lock, and
// reads the clock.
//
//	$1 lock_timeout  text, milliseconds
const sqlLockTimeout = `-- reaper.lock_timeout
select set_config('lock_timeout', $1, true), ` + sqlClock

// sqlSettings is sqlLockTimeout with what the planner is told for the claim; it
// returns what held before. Where statistics know of few
// stale leases, the server would sort them all to find the oldest of a million; a
// sort that is forbidden leaves the index, which is read no further than the batch.
// Where they know of very many, it would compile the statement each time, which
// takes longer than to run it. A plan that is made for all parameters is made once; the
// server would plan the claim anew each time, which takes longer than a claim that
// finds nothing.
//
//	$1 lock_timeout  text, milliseconds
const sqlSettings = `-- reaper.settings
select set_config('lock_timeout', $1, true), ` + sqlClock + `,
  current_setting('enable_sort'), set_config('enable_sort', 'off', true),
  current_setting('jit'), set_config('jit', 'off', true),
  current_setting('plan_cache_mode'), set_config('plan_cache_mode', 'force_generic_plan', true)`

// sqlPlannerSettings puts back what held before sqlSettings.
//
//	$1 enable_sort      text
//	$2 jit              text
//	$3 plan_cache_mode  text
const sqlPlannerSettings = `-- reaper.planner_settings
select set_config('enable_sort', $1, true), set_config('jit', $2, true), set_config('plan_cache_mode', $3, true)`

// plannerSettings are the session's own. They hold while code of the caller's runs: a
// source, a mover, a hook, the triggers of a table. The claim of a plan needs no others:
// it finds rows by the queue's key.
type plannerSettings struct {
	replaced                    bool // those of the claim hold
	enableSort, jit, planCaches string
}

// queueLockTimeout queues the bound of the waits for locks.
func (r *Reaper) queueLockTimeout(batch *pgx.Batch) {
	batch.Queue(sqlLockTimeout, r.lockTimeout).Query(discard)
}

// queueFirstSettings queues the settings that hold from the beginning. Before a source
// of the caller's own is read, only the waits are bounded.
func (a *attempt) queueFirstSettings(batch *pgx.Batch) {
	if a.r.source != nil && a.req.plan == nil {
		a.queueSettings(batch)
		return
	}
	batch.Queue(sqlLockTimeout, a.r.lockTimeout).QueryRow(func(row pgx.Row) error {
		return row.Scan(nil, &a.now, &a.plainStyles)
	})
}

// queueSettings queues the settings of a claim, unless they hold already. A caller's
// transaction keeps the caller's.
func (a *attempt) queueSettings(batch *pgx.Batch) {
	if a.planner.replaced || a.r.nested {
		return
	}
	own := &a.planner
	own.replaced = true
	batch.Queue(sqlSettings, a.r.lockTimeout).QueryRow(func(row pgx.Row) error {
		return row.Scan(nil, &a.now, &a.plainStyles, &own.enableSort, nil, &own.jit, nil, &own.planCaches, nil)
	})
}

// queuePlannerSettings queues the return to the session's own settings.
func (a *attempt) queuePlannerSettings(batch *pgx.Batch) {
	if own := a.planner; own.replaced {
		a.planner.replaced = false
		batch.Queue(sqlPlannerSettings, own.enableSort, own.jit, own.planCaches)
	}
}

// discard reads rows that nobody needs.
func discard(rows pgx.Rows) error {
	rows.Close()
	return rows.Err()
}
