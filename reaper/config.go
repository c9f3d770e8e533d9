package reaper

import (
	"context"
	"errors"
	"reflect"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
)

// DB begins transactions: a pool, a connection, or a transaction of the
// caller's, in which everything then happens inside a savepoint. A DB that also
// has pgx's BeginTx is asked for the isolation level that each call needs,
// whatever the database's default is; a DB without it gives what it gives.
type DB interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}

var (
	_ DB = (*pgxpool.Pool)(nil)
	_ DB = (*pgx.Conn)(nil)
	_ DB = (pgx.Tx)(nil)
)

// Config says which queue to reap and how. Its zero value is the reference
// schema's set-up.
type Config struct {
	// Queue maps the queue's table, columns and states. A wrong mapping reaps
	// the wrong rows or none. Default: the reference schema's job_queue.
	Queue Table

	// Gates decides whether an apply may go ahead. A source that opens too
	// easily takes the operators' hand off the switch. Default: [gates.Table]
	// over queue_config.
	Gates gates.Source

	// DeadLetter stores jobs whose attempts are spent. Default:
	// [deadletter.Table] over job_dead_letter.
	DeadLetter deadletter.Mover

	// Backoff is the wait before a job's next try. Too short, and a job that
	// kills its workers kills many; too long, and work lies idle. Default:
	// [backoff.Exponential] without jitter, over the operators' base.
	Backoff backoff.Policy
}

// validator is what a part of Config may have to report its faults to New.
type validator interface{ Validate() error }

func (c Config) withDefaults() Config {
	if c.Gates == nil {
		c.Gates = gates.Table{}
	}
	if c.DeadLetter == nil {
		c.DeadLetter = deadletter.Table{}
	}
	if c.Backoff == nil {
		c.Backoff = backoff.Exponential{}
	}
	return c
}

func (c Config) validate() error {
	var faults []error
	for _, part := range []any{c.Gates, c.DeadLetter, c.Backoff} {
		if v, ok := part.(validator); ok {
			faults = append(faults, v.Validate())
		}
	}
	return errors.Join(faults...)
}

// isNil also sees the nil pointer inside an interface, which a pool that was
// never opened is.
func isNil(db DB) bool {
	if db == nil {
		return true
	}
	v := reflect.ValueOf(db)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
