package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/reaper"
)

// removeTimeout bounds the clean-up, which also happens when the context has
// ended.
const removeTimeout = 10 * time.Second

// workspace is a schema of the example's own, and a pool that sees nothing else.
type workspace struct {
	pool   *pgxpool.Pool
	schema string // quoted
}

// openWorkspace creates the schema and puts it on the search path.
func openWorkspace(ctx context.Context, config *pgxpool.Config) (*workspace, error) {
	name := "leasereaper_quickstart_" + strings.ToLower(rand.Text()[:8])
	schema := pgx.Identifier{name}.Sanitize()
	config.ConnConfig.RuntimeParams["search_path"] = schema
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	space := &workspace{pool: pool, schema: schema}
	if _, err := pool.Exec(ctx, `create schema `+schema); err != nil {
		err = fmt.Errorf("create schema: %w", err)
		return nil, errors.Join(err, space.remove(ctx))
	}
	return space, nil
}

// fill creates the reference tables and the jobs.
func (w *workspace) fill(ctx context.Context) error {
	if _, err := w.pool.Exec(ctx, reaper.Schema); err != nil {
		return fmt.Errorf("create tables: %w", err)
	}
	if _, err := w.pool.Exec(ctx, sqlFill); err != nil {
		return fmt.Errorf("insert jobs: %w", err)
	}
	return nil
}

// remove drops the schema with all that is in it, and closes the pool.
func (w *workspace) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	defer w.pool.Close()
	if _, err := w.pool.Exec(ctx, `drop schema if exists `+w.schema+` cascade`); err != nil {
		return fmt.Errorf("drop schema %s: %w", w.schema, err)
	}
	return nil
}

// sqlFill inserts a job of each sort. Those of worker-1 and worker-2 are stale:
// nobody renewed the leases.
const sqlFill = `-- quickstart.fill
insert into job_queue (job_kind, state, attempts, max_attempts, lease_owner, lease_until, scheduled_at)
values
  ('send_invoice', 'leased', 0, 5, 'worker-1', now() - interval '90 s', now() - interval '5 min'),
  ('resize_image', 'leased', 2, 5, 'worker-1', now() - interval '75 s', now() - interval '5 min'),
  ('charge_card',  'leased', 4, 5, 'worker-2', now() - interval '60 s', now() - interval '5 min'),
  ('send_email',   'leased', 0, 3, 'worker-3', now() + interval '5 min', now() - interval '5 min'),
  ('build_report', 'ready',         0, 5, null, null, now()),
  ('sync_ledger',  'retry_waiting', 1, 5, null, null, now() + interval '2 min'),
  ('send_receipt', 'succeeded',     1, 5, null, null, now() - interval '1 h')`
