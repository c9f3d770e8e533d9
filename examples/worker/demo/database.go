package demo

import (
	"context"
	_ "embed" // for the witness
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/examples/worker/service"
	"github.com/lease-governance/leasereaper/internal/pgtest"
)

//go:embed witness.sql
var witness string

// sqlGates opens the gates as an operator would, and lets reaped jobs come back
// soon.
const sqlGates = `-- demo.gates
insert into queue_config (key, value)
values
  ('queue.job_substrate.enabled', 'true'),
  ('queue.lease.reaper_enabled', 'true'),
  ('queue.lease.reaper_dry_run_only', 'false'),
  ('queue.retry.backoff_base_sec', '1')`

// database is the demo's own, on a server that is started for it if need be.
type database struct {
	*pgtest.Database
	url string
}

func openDatabase(ctx context.Context) (*database, error) {
	opened, err := pgtest.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, pgtest.Shutdown())
	}
	db := &database{Database: opened}
	if db.url, err = databaseURL(opened.Pool.Config().ConnConfig); err == nil {
		err = db.create(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, db.close())
	}
	return db, nil
}

func (db *database) create(ctx context.Context) error {
	for _, schema := range []string{jobs.Schema, reapjob.Schema, service.AuditSchema, witness, sqlGates} {
		if _, err := db.Pool.Exec(ctx, schema); err != nil {
			return fmt.Errorf("demo: create tables: %w", err)
		}
	}
	return nil
}

func (db *database) close() error {
	return errors.Join(db.Close(), pgtest.Shutdown())
}

// databaseURL is the connection string for another process.
func databaseURL(config *pgx.ConnConfig) (string, error) {
	given := config.ConnString()
	if !strings.Contains(given, "://") {
		return given + " dbname=" + config.Database, nil
	}
	parsed, err := url.Parse(given)
	if err != nil {
		return "", fmt.Errorf("demo: %w", err)
	}
	parsed.Path = "/" + config.Database
	return parsed.String(), nil
}

// heldJob is a job that somebody is at.
type heldJob struct{ ID, Kind string }

const sqlHeld = `-- demo.held
select job_id::text as id, job_kind as kind
from job_queue
where state = 'leased'
  and split_part(lease_owner, '/', 1) = $1
order by job_kind`

// held lists the jobs that a worker is at.
func (db *database) held(ctx context.Context, worker string) ([]heldJob, error) {
	rows, _ := db.Pool.Query(ctx, sqlHeld, worker) // collecting gives the error
	return pgx.CollectRows(rows, pgx.RowToStructByName[heldJob])
}

const sqlPresent = `-- demo.present
select count(*)
from pg_stat_activity
where application_name = $1`

// gone returns when no server process of a worker's is left.
func (db *database) gone(ctx context.Context, worker string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(tick / 10)
	defer again.Stop()
	for {
		var left int
		err := db.Pool.QueryRow(ctx, sqlPresent, worker).Scan(&left)
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// progress is where the jobs stand, the reap jobs aside.
type progress struct{ Waiting, Leased, Succeeded, Dead int }

const sqlProgress = `-- demo.progress
select count(*) filter (where state in ('ready', 'retry_waiting')) as waiting,
  count(*) filter (where state = 'leased') as leased,
  count(*) filter (where state = 'succeeded') as succeeded,
  count(*) filter (where state = 'dead_letter') as dead
from job_queue
where job_kind <> $1`

func (db *database) progress(ctx context.Context) (progress, error) {
	rows, _ := db.Pool.Query(ctx, sqlProgress, reapjob.Kind) // collecting gives the error
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[progress])
}

func (db *database) unfinished(ctx context.Context) (int, error) {
	p, err := db.progress(ctx)
	return p.Waiting + p.Leased, err
}
