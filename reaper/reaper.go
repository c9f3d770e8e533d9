package reaper

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/gatesql"
	"github.com/lease-governance/leasereaper/internal/letter"
	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// Reaper finds stale leases and resets or moves their jobs. It is made by New, and
// may be used by any number of goroutines at once if its DB may.
type Reaper struct {
	db     DB
	nested bool // db is a transaction of the caller's
	cfg    Config
	sql    *stmt.Statements
	scope  any // the statements' $1

	deadLetterQueue deadletter.Queue // what a mover is told

	// What Config has of the library's own parts, whose statements travel with the
	// reaper's.
	source   gatesql.Source // nil: another source
	letters  pgx.Identifier // the dead-letter table; nil: another mover
	function pgx.Identifier // the mover's function; nil: another mover
	inPlace  bool           // dead jobs stay in the queue

	lockTimeout, shortLockTimeout string // milliseconds

	tables  atomic.Pointer[stmt.Tables] // nil: not known yet
	refused atomic.Bool                 // the last apply was refused, so the next one reads the gates before it claims
}

// shortLockTimeout is how long the isolating way waits for each further lock, once a
// wait of the whole LockTimeout has failed: a hundredth of it, and no less than the
// server itself may hold a lock on a busy machine, to extend a table say. Otherwise a
// hundred locked rows would take minutes.
func shortLockTimeout(timeout time.Duration) time.Duration {
	return max(timeout/100, min(timeout, 10*time.Millisecond))
}

// New makes a Reaper. It does no I/O, so a table that does not exist shows at
// the first call. Its error holds every fault of cfg at once; a nil db is
// [ErrNilDB].
func New(db DB, cfg Config) (*Reaper, error) {
	var faults []error
	if isNil(db) {
		faults = append(faults, ErrNilDB)
	}
	cfg = cfg.withDefaults()
	letters, function := builtinMover(cfg.DeadLetter)
	_, inPlace := cfg.DeadLetter.(deadletter.InPlace)
	sql, err := stmt.New(cfg.Queue.mapping(), cfg.scope(), letters)
	faults = append(faults, cfg.Queue.validate(cfg.DeadLetter), err, cfg.validate())
	parameter, err := cfg.scope().Parameter()
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return &Reaper{
		db: db, nested: pgtx.IsNested(db), cfg: cfg, sql: sql, scope: parameter,
		deadLetterQueue: cfg.Queue.DeadLetterQueue(),
		source:          builtinSource(cfg.Gates), letters: letters, function: function, inPlace: inPlace,
		lockTimeout:      pgtx.LockTimeoutMillis(cfg.LockTimeout),
		shortLockTimeout: pgtx.LockTimeoutMillis(shortLockTimeout(cfg.LockTimeout)),
	}, nil
}

// builtinSource returns the statement of a source of the library's own, which can
// travel with others. A type that embeds such a source has a Read of its own.
func builtinSource(source gates.Source) gatesql.Source {
	switch source := source.(type) {
	case gates.Table:
		table, _ := gatesql.NewTable(source.Name) // a name that cannot be is a fault of the configuration
		return table
	case gates.CurrentSetting:
		return gatesql.CurrentSetting{}
	case gates.Static:
		values, _ := source.Read(context.Background(), nil, nil) // it always has its answers
		return gatesql.Fixed(values)
	}
	return nil
}

// builtinMover returns the name of what one of the library's own movers uses: a
// dead-letter table, or a function. Another type may embed one of them and have a Move
// of its own.
func builtinMover(mover deadletter.Mover) (letters, function pgx.Identifier) {
	switch mover := mover.(type) {
	case deadletter.Table:
		return orName(mover.Name, letter.DefaultTable), nil
	case deadletter.Function:
		return nil, orName(mover.Name, letter.DefaultFunction)
	}
	return nil, nil
}

// orName returns a name, or the one that stands for an empty one.
func orName(name pgx.Identifier, unset string) pgx.Identifier {
	if len(name) == 0 {
		return pgx.Identifier{unset}
	}
	return name
}

// callsMover reports whether a mover of the caller's is called, in Go.
func (r *Reaper) callsMover() bool { return r.letters == nil && r.function == nil && !r.inPlace }
