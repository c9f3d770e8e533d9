package reaper

import (
	"errors"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

// Reaper finds stale leases and settles them. It is made by New.
type Reaper struct {
	db     DB
	nested bool // db is a transaction of the caller's
	cfg    Config
	sql    statements
	scope  any // the statements' $1
	queue  deadletter.Queue

	// refused is set when the last apply was: the next one then asks the gates
	// before it claims.
	refused atomic.Bool
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
	sql, queue, err := cfg.Queue.render(cfg.scope())
	faults = append(faults, err, cfg.validate())
	parameter, err := cfg.scope().parameter()
	faults = append(faults, err)
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	_, nested := db.(pgx.Tx)
	return &Reaper{db: db, nested: nested, cfg: cfg, sql: sql, scope: parameter, queue: queue}, nil
}
