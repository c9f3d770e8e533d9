package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// connectTimeout bounds the wait for a server that does not answer.
const connectTimeout = 10 * time.Second

// open opens the database that the flags name, and returns what closes it.
func (t *tool) open(ctx context.Context) (func() error, error) {
	if t.embedded {
		return t.openEmbedded(ctx)
	}
	config, err := t.poolConfig()
	if err != nil {
		return nil, err
	}
	t.began = true
	t.pool, err = pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return func() error { t.pool.Close(); return nil }, nil
}

// poolConfig reads the connection string. The parser's own error may quote a part of
// the password, so it is not shown.
func (t *tool) poolConfig() (*pgxpool.Config, error) {
	url, name := t.url, cmp.Or(t.urlName, "--database-url")
	if url == "" {
		url, name = os.Getenv("DATABASE_URL"), "DATABASE_URL"
	}
	if url == "" {
		return nil, misused("which database? Set DATABASE_URL or --database-url, or try --embedded")
	}
	return parseURL(url, name)
}

func parseURL(url, name string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, misused("%s is not a PostgreSQL connection string", name)
	}
	config.MaxConns = 2
	config.ConnConfig.ConnectTimeout = min(nonZero(config.ConnConfig.ConnectTimeout), connectTimeout)
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "leasereaper"
	}
	return config, nil
}

func nonZero(d time.Duration) time.Duration {
	if d == 0 {
		return connectTimeout
	}
	return d
}

// openEmbedded makes a database that ends with this program, and puts a few jobs
// into it.
func (t *tool) openEmbedded(ctx context.Context) (func() error, error) {
	t.began = true
	if t.url != "" {
		return nil, misused("--embedded and --database-url are two databases; choose one")
	}
	fmt.Fprintln(t.errs, "making a temporary database with a few jobs in it, which ends with this command")
	database, err := pgtest.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, pgtest.Shutdown())
	}
	closeDB := func() error { return errors.Join(database.Close(), pgtest.Shutdown()) }
	t.pool = database.Pool
	if _, err := t.pool.Exec(ctx, sqlTry); err != nil {
		return nil, errors.Join(err, closeDB())
	}
	return closeDB, nil
}

// sqlTry fills the reference tables: workers that died some time ago, one that
// lives, and open gates.
const sqlTry = `-- leasereaper.try
with jobs(kind, attempts, owner, ended) as (
  values
    ('send_invoice', 0, 'worker-1', interval '42 minutes'),
    ('send_invoice', 2, 'worker-1', interval '41 minutes'),
    ('charge_card', 4, 'worker-2', interval '5 minutes'),
    ('resize_image', 1, 'worker-2', interval '5 minutes'),
    ('resize_image', 0, 'worker-3', interval '-10 minutes')
), queued as (
  insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
  select kind, 'leased', attempts, owner, now() - ended from jobs
)
insert into queue_config (key, value) values
  ('queue.job_substrate.enabled', 'true'),
  ('queue.lease.reaper_enabled', 'true'),
  ('queue.lease.reaper_dry_run_only', 'false')`

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect reads a column.
func collect[T any](ctx context.Context, db querier, sql string, args ...any) ([]T, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[T])
}
