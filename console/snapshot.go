package console

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/lease-governance/leasereaper/reaper"
)

// snapshot is what the overview, the jobs and the gates show, read together.
type snapshot struct {
	Jobs     *reaper.DryRunResult `json:"dry_run"`
	Gates    *gateState           `json:"gates"`
	Kinds    []tally              `json:"kinds"`  // of the jobs listed, most first
	Owners   []tally              `json:"owners"` // likewise
	Expiries []expiry             `json:"next_expiries"`
	Letters  *letterCount         `json:"dead_letters"` // nil: they are no table
	Passes   []pass               `json:"passes"`       // newest first
}

// tally counts stale leases that have something in common.
type tally struct {
	Name   string `json:"name"`
	Count  int    `json:"count"`
	Moves  int    `json:"moves"`                  // how many of them would be moved
	Oldest int64  `json:"oldest_overdue_seconds"` // how long the oldest is overdue
}

// expiry is a lease that has not expired yet.
type expiry struct {
	Kind       string    `json:"job_kind"`
	Owner      *string   `json:"lease_owner"`
	JobID      string    `json:"job_id"`
	LeaseUntil time.Time `json:"lease_until"`
	Seconds    float64   `json:"seconds"` // until then
}

// letterCount counts dead letters up to letterBound.
type letterCount struct {
	Letters    int  `json:"letters"`
	Unredriven int  `json:"unredriven"` // of those
	Capped     bool `json:"capped"`     // there are more letters than were counted

	Uncounted bool `json:"uncounted,omitempty"` // it takes too long; the numbers are 0
}

const (
	sampleSize    = 1000   // stale leases that are read for the tallies and the list
	expiryLimit   = 5000   // leases that are read for the chart of expiries
	expiriesShown = 10     // of those
	letterBound   = 10_000 // dead letters that are counted
)

// snapshot returns what was read of the database within the last second.
func (d *database) snapshot(ctx context.Context) (*snapshot, *trouble, error) {
	got, err := d.snapshots.get(ctx, "", d.readSnapshot)
	switch {
	case err != nil:
		return nil, nil, err
	case got.at.IsZero():
		return nil, nil, got.trouble.failure()
	}
	return got.value, got.trouble, nil
}

func (d *database) readSnapshot(ctx context.Context) (*snapshot, error) {
	s := &snapshot{}
	err := d.look.read(ctx, func(tx pgx.Tx) error {
		r, err := reaper.New(tx, d.cfg.Reaper)
		if err != nil {
			return err
		}
		if s.Jobs, err = r.DryRun(ctx, sampleSize); err != nil {
			return err
		}
		if s.Gates, err = d.readGates(ctx, tx); err != nil {
			return err
		}
		if s.Expiries, err = d.readExpiries(ctx, tx); err != nil || d.store == nil {
			return err
		}
		s.Letters, err = d.countLetters(ctx, tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.Kinds = tallies(s.Jobs.Jobs, func(j reaper.Job) string { return j.JobKind })
	s.Owners = tallies(s.Jobs.Jobs, func(j reaper.Job) string {
		if j.LeaseOwner == nil {
			return ""
		}
		return *j.LeaseOwner
	})
	if d.cfg.Passes != nil {
		s.Passes = d.cfg.Passes.newest()
	}
	return s, nil
}

// readExpiries reads what expires next.
func (d *database) readExpiries(ctx context.Context, tx pgx.Tx) ([]expiry, error) {
	cfg := d.cfg.Reaper
	rows, err := tx.Query(ctx, d.sql.expiries, expiryLimit, cfg.Kinds, cfg.ExceptKinds)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[expiry])
}

// sqlCountTimeout bounds the count of dead letters.
const sqlCountTimeout = `-- console.count_timeout
set local statement_timeout = '500ms'`

// countAgain is how long a count that took too long is not tried again.
const countAgain = time.Minute

// countLetters counts the dead letters. Those in place may be few among many rows without
// an index; then they are not counted.
func (d *database) countLetters(ctx context.Context, tx pgx.Tx) (*letterCount, error) {
	if time.Now().Before(d.countFrom) {
		return &letterCount{Uncounted: true}, nil
	}
	nested, err := tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	n := &letterCount{}
	_, err = nested.Exec(ctx, sqlCountTimeout)
	if err == nil {
		err = nested.QueryRow(ctx, d.sql.letters, letterBound+1).Scan(&n.Letters, &n.Unredriven)
	}
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) && pgErr.Code == queryCanceled {
		d.countFrom = time.Now().Add(countAgain)
		n, err = &letterCount{Uncounted: true}, nil
	}
	if n.Letters > letterBound {
		n.Letters, n.Capped = letterBound, true
		n.Unredriven = min(n.Unredriven, letterBound)
	}
	return n, errors.Join(err, nested.Rollback(ctx)) // which ends the short time-out too
}

// queryCanceled is the SQLSTATE of a statement that took too long.
const queryCanceled = "57014"

// tallies counts jobs by name, most first.
func tallies(jobs []reaper.Job, name func(reaper.Job) string) []tally {
	index, list := map[string]int{}, []tally{}
	for _, job := range jobs {
		key := name(job)
		i, known := index[key]
		if !known { // the oldest lease comes first
			i = len(list)
			index[key] = i
			list = append(list, tally{Name: key, Oldest: job.OverdueSeconds})
		}
		list[i].Count++
		if job.WouldAction == reaper.WouldMove {
			list[i].Moves++
		}
	}
	slices.SortStableFunc(list, func(a, b tally) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
