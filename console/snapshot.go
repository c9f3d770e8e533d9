package console

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

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
		return d.readCounts(ctx, tx, s)
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

// readCounts reads what expires next and how many dead letters there are, in one
// exchange.
func (d *database) readCounts(ctx context.Context, tx pgx.Tx, s *snapshot) error {
	batch := &pgx.Batch{}
	batch.Queue(d.sql.expiries, expiryLimit).Query(func(rows pgx.Rows) (err error) {
		s.Expiries, err = pgx.CollectRows(rows, pgx.RowToStructByPos[expiry])
		return err
	})
	if d.store != nil {
		s.Letters = &letterCount{}
		batch.Queue(d.sql.letters, letterBound+1).QueryRow(func(row pgx.Row) error {
			return row.Scan(&s.Letters.Letters, &s.Letters.Unredriven)
		})
	}
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return err
	}
	if s.Letters != nil && s.Letters.Letters > letterBound {
		s.Letters.Letters, s.Letters.Capped = letterBound, true
		s.Letters.Unredriven = min(s.Letters.Unredriven, letterBound)
	}
	return nil
}

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
