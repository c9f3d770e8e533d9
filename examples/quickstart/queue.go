package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// queue reads the tables as an onlooker would, and sets gates as an operator
// would.
type queue struct{ pool *pgxpool.Pool }

// job is a row of the queue.
type job struct {
	Kind        string
	State       string
	Attempts    int
	MaxAttempts int
	Owner       *string
	Overdue     *int64 // seconds since the lease ran out; negative while it lives
	DueIn       int64  // seconds until a worker may claim it
	LastError   *string
}

const sqlJobs = `-- quickstart.jobs
select job_kind as kind,
  state,
  attempts,
  max_attempts,
  lease_owner as owner,
  floor(extract(epoch from now() - lease_until))::bigint as overdue,
  ceil(extract(epoch from scheduled_at - now()))::bigint as due_in,
  last_error
from job_queue
order by job_kind`

func (q queue) jobs(ctx context.Context) ([]job, error) {
	rows, err := q.pool.Query(ctx, sqlJobs)
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	jobs, err := pgx.CollectRows(rows, pgx.RowToStructByName[job])
	if err != nil {
		return nil, fmt.Errorf("read queue: %w", err)
	}
	return jobs, nil
}

// deadLetter is a row of the dead letters.
type deadLetter struct {
	Kind        string
	Attempts    int
	MaxAttempts int
	FinalError  string
	MovedBy     string
}

const sqlDeadLetters = `-- quickstart.dead_letters
select job_kind as kind, attempts, max_attempts, final_error, moved_by
from job_dead_letter
order by moved_at, job_kind`

func (q queue) deadLetters(ctx context.Context) ([]deadLetter, error) {
	rows, err := q.pool.Query(ctx, sqlDeadLetters)
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	letters, err := pgx.CollectRows(rows, pgx.RowToStructByName[deadLetter])
	if err != nil {
		return nil, fmt.Errorf("read dead letters: %w", err)
	}
	return letters, nil
}

const sqlSet = `-- quickstart.set
insert into queue_config (key, value)
values ($1, $2)
on conflict (key) do update
set value = excluded.value,
  updated_at = now(),
  updated_by = current_user`

// set changes one setting of the operators'.
func (q queue) set(ctx context.Context, key, value string) error {
	if _, err := q.pool.Exec(ctx, sqlSet, key, value); err != nil {
		return fmt.Errorf("set %s: %w", key, err)
	}
	return nil
}
