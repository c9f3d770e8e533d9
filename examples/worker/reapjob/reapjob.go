package reapjob

import (
	"cmp"
	"context"
	_ "embed" // for the schema
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/examples/worker/queue"
	"github.com/lease-governance/leasereaper/examples/worker/work"
	"github.com/lease-governance/leasereaper/reaper"
)

// Kind is the reap job's.
const Kind = "queue.lease.reap"

// Schema is the index that the reap job needs. It may be applied again.
//
//go:embed schema.sql
var Schema string

var (
	// ErrNegative is wrapped by New's error for each setting that is negative.
	ErrNegative = errors.New("reapjob: negative setting")

	// ErrActor is New's error for an actor that is not given.
	ErrActor = errors.New("reapjob: no actor")
)

// Config says how the reap job reaps.
type Config struct {
	// Actor says who reaps. Required.
	Actor string

	// Batch is the limit of each apply. Too low, and a backlog takes many jobs; too
	// high, and a transaction holds its row locks for long. Default 1000.
	Batch int

	// Every is how long after one reap job the next one is due. A dead worker's job
	// waits that much longer, so too high is slow; too low is a job for nothing.
	// After a full batch the next one is due at once. Default 5 s.
	Every time.Duration

	// Settle is how long workers get to renew before the reap job reaps, after a
	// restart of the server and after a time in which nobody could claim it. Too
	// low, and jobs of living workers are given away; too high only delays. It
	// should be the loop's. Default 30 s; a nanosecond is as good as none.
	Settle time.Duration

	// Late is how late a reap job may be before that counts as such a time. What
	// keeps workers from claiming keeps them from renewing too. Too low, and each
	// backlog delays the reaping; too high, and leases end in a time that was not
	// noticed. It should be no longer than workers wait until they renew. Default
	// 10 s.
	Late time.Duration

	// Reaper is the reaper's own configuration. What it logs of an apply is in its
	// Logger before the transaction has committed.
	Reaper reaper.Config

	// OnPass is called after each apply that has committed, for metrics; it is not
	// while workers get time to renew. Took has the apply alone. Default nil.
	OnPass func(pass reaper.Pass)
}

func (c Config) withDefaults() Config {
	c.Batch = cmp.Or(c.Batch, 1000)
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.Settle = cmp.Or(c.Settle, 30*time.Second)
	c.Late = cmp.Or(c.Late, 10*time.Second)
	if c.OnPass == nil {
		c.OnPass = func(reaper.Pass) {}
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if c.Actor == "" {
		faults = append(faults, ErrActor)
	}
	if c.Batch < 0 {
		faults = append(faults, fmt.Errorf("%w: Batch %d", ErrNegative, c.Batch))
	}
	for _, wait := range []struct {
		name string
		time.Duration
	}{{"Every", c.Every}, {"Settle", c.Settle}, {"Late", c.Late}} {
		if wait.Duration < 0 {
			faults = append(faults, fmt.Errorf("%w: %s %v", ErrNegative, wait.name, wait.Duration))
		}
	}
	return errors.Join(faults...)
}

// Job is the reap job.
type Job struct {
	pool *pgxpool.Pool
	cfg  Config
}

// New makes a Job. It reports every fault of cfg and does no I/O.
func New(pool *pgxpool.Pool, cfg Config) (*Job, error) {
	cfg = cfg.withDefaults()
	_, err := reaper.New(pool, cfg.Reaper)
	if err := errors.Join(err, cfg.validate()); err != nil {
		return nil, err
	}
	return &Job{pool: pool, cfg: cfg}, nil
}

// payload is a reap job's.
type payload struct {
	After   string `json:"after,omitempty"`   // the id of the reap job before it
	Settled bool   `json:"settled,omitempty"` // that one left the workers time to renew
}

// Seed adds the first reap job, due at once, unless there is one. Every worker may
// call it, at any time.
func (j *Job) Seed(ctx context.Context) error {
	return schedule(ctx, j.pool, payload{}, 0)
}

// Handle is the handler of the kind. Everything it does is in the job's effects.
func (j *Job) Handle(_ context.Context, job queue.Job) (work.Done, error) {
	var current payload
	if err := json.Unmarshal(job.Payload, &current); err != nil {
		return work.Done{}, fmt.Errorf("reapjob: payload: %w", err)
	}
	var pass reaper.Pass
	return work.Done{
		Effects: func(ctx context.Context, tx pgx.Tx) error {
			if err := forget(ctx, tx, current.After); err != nil {
				return err
			}
			next := payload{After: job.ID}
			wait, err := j.settle(ctx, tx, job.ID, current.Settled)
			if next.Settled = wait > 0; err == nil && !next.Settled {
				pass, err = j.apply(ctx, tx)
				wait = j.wait(pass)
			}
			if err != nil {
				return err
			}
			return schedule(ctx, tx, next, wait)
		},
		Committed: func() {
			if pass.Result != nil {
				j.cfg.OnPass(pass)
			}
		},
	}, nil
}

// settle returns how long workers get to renew before anything is reaped: the rest
// of Settle after a restart of the server, and all of it when the job comes late,
// unless the one before has waited.
func (j *Job) settle(ctx context.Context, tx pgx.Tx, id string, settled bool) (time.Duration, error) {
	var uptime, late time.Duration
	if err := tx.QueryRow(ctx, sqlAway, id).Scan(&uptime, &late); err != nil {
		return 0, fmt.Errorf("reapjob: settle: %w", err)
	}
	if late > j.cfg.Late && !settled {
		return j.cfg.Settle, nil
	}
	return j.cfg.Settle - max(uptime, 0), nil
}

// apply reaps one batch in the transaction that completes the job. An error of the
// reaper's is the job's, which is then tried again.
func (j *Job) apply(ctx context.Context, tx pgx.Tx) (reaper.Pass, error) {
	r, err := reaper.New(tx, j.cfg.Reaper)
	if err != nil {
		return reaper.Pass{}, err
	}
	began := time.Now()
	result, err := r.Apply(ctx, j.cfg.Actor, j.cfg.Batch)
	return reaper.Pass{Result: result, Err: err, Took: time.Since(began)}, err
}

// wait is how long after this pass the next one is due.
func (j *Job) wait(pass reaper.Pass) time.Duration {
	if pass.Result != nil && len(pass.Result.Actions) >= j.cfg.Batch {
		return 0
	}
	return j.cfg.Every
}

// execer is a pool or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

func schedule(ctx context.Context, db execer, next payload, wait time.Duration) error {
	if _, err := db.Exec(ctx, sqlSchedule, next, wait); err != nil {
		return fmt.Errorf("reapjob: schedule: %w", err)
	}
	return nil
}

func forget(ctx context.Context, tx pgx.Tx, id string) error {
	if id == "" {
		return nil
	}
	if _, err := tx.Exec(ctx, sqlForget, id); err != nil {
		return fmt.Errorf("reapjob: forget: %w", err)
	}
	return nil
}
