package queue

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
)

var (
	// ErrLost says that the lease is another's by now, or that the job has ended.
	ErrLost = errors.New("queue: the lease is lost")

	// ErrUnknown says that the connection broke, or the context ended, while the
	// change was being committed: it happened whole or not at all.
	ErrUnknown = errors.New("queue: connection broke during commit, outcome unknown")

	// ErrNegative is wrapped by New's error for each setting that is negative.
	ErrNegative = errors.New("queue: negative setting")
)

// Config says how a queue is worked. Its zero value works.
type Config struct {
	// Name is the worker's, and the beginning of the owner of each of its leases.
	// Default "worker".
	Name string

	// Lease is how long a claim and a renewal last, by the database's clock. Too
	// short, and a busy worker loses jobs that it is at; too long, and a dead
	// worker's jobs lie idle. Default 30 s.
	Lease time.Duration

	// BackoffBaseSec is the base of Backoff for jobs that failed, in seconds. Too
	// low, and what a job needs is not back yet; too high, and work lies idle.
	// Default 10.
	BackoffBaseSec int64

	// Backoff is the wait before the next try of a job that failed. Default:
	// exponential, with up to a tenth taken off by chance.
	Backoff backoff.Policy

	// DeadLetter stores jobs that failed for the last time. It should be the
	// reaper's, so that there is one place to look. Default: [deadletter.Table].
	DeadLetter deadletter.Mover
}

func (c Config) withDefaults() Config {
	c.Name = cmp.Or(c.Name, "worker")
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.BackoffBaseSec = cmp.Or(c.BackoffBaseSec, 10)
	if c.Backoff == nil {
		c.Backoff = backoff.Exponential{Jitter: 0.1}
	}
	if c.DeadLetter == nil {
		c.DeadLetter = deadletter.Table{}
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	if c.Lease < 0 {
		faults = append(faults, fmt.Errorf("%w: Lease %v", ErrNegative, c.Lease))
	}
	if c.BackoffBaseSec < 0 {
		faults = append(faults, fmt.Errorf("%w: BackoffBaseSec %d", ErrNegative, c.BackoffBaseSec))
	}
	return errors.Join(faults...)
}

// Queue is the table job_queue of the reference schema.
type Queue struct {
	pool *pgxpool.Pool
	cfg  Config
}

// New makes a Queue. It reports every fault of cfg and does no I/O.
func New(pool *pgxpool.Pool, cfg Config) (*Queue, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Queue{pool: pool, cfg: cfg}, nil
}

// Lease is how long a claim and a renewal last.
func (q *Queue) Lease() time.Duration { return q.cfg.Lease }

// Job is a claimed job.
type Job struct {
	ID          string
	Kind        string
	Payload     json.RawMessage
	Attempts    int // that ended; this one not counted
	MaxAttempts int
	Owner       string // of this claim alone
}

// Claim takes at most n jobs of these kinds that are due, those that have waited
// longest. It waits for nobody: a row that someone has locked is left to them.
// When ctx ends meanwhile, jobs may be leased that nobody knows of, until their
// leases end.
func (q *Queue) Claim(ctx context.Context, kinds []string, n int) ([]Job, error) {
	owner := q.cfg.Name + "/" + rand.Text()[:10]
	rows, err := q.pool.Query(ctx, sqlClaim, owner, q.cfg.Lease, kinds, n)
	if err != nil {
		return nil, fmt.Errorf("queue: claim: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByName[Job])
	if err != nil {
		return nil, fmt.Errorf("queue: claim: %w", err)
	}
	return jobs, nil
}

// Renew lets the lease last for its full time from now. A lease that has ended
// is renewed too, if nobody has reaped it yet. Else the error is [ErrLost].
func (q *Queue) Renew(ctx context.Context, job Job) error {
	return touch(ctx, q.pool, sqlRenew, job, q.cfg.Lease)
}

// GiveBack ends the lease without counting a try: the job is due at once. The
// errors are [ErrLost] and [ErrUnknown].
func (q *Queue) GiveBack(ctx context.Context, job Job) error {
	return known(touch(ctx, q.pool, sqlGiveBack, job))
}

// execer is a pool, a connection or a transaction.
type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// touch changes the row of a job as it was claimed.
func touch(ctx context.Context, db execer, sql string, job Job, args ...any) error {
	tag, err := db.Exec(ctx, sql, append([]any{job.ID, job.Owner, job.Attempts}, args...)...)
	if err != nil {
		return fmt.Errorf("queue: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrLost
	}
	return nil
}

// known tells an error after which nothing has changed from one after which
// nobody knows.
func known(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, ErrLost), errors.Is(err, pgx.ErrTxCommitRollback), pgconn.SafeToRetry(err):
		return err
	case errors.As(err, &pgErr) && pgErr.SeverityUnlocalized == "ERROR":
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
