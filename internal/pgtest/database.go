package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/reaper"
)

// dropTimeout bounds the close of a pool, and the drop of a database.
const dropTimeout = 5 * time.Second

var errAcquired = errors.New("a connection of the pool is still acquired")

// Database is a temporary database on the server of the process.
type Database struct {
	// Pool connects to the database as its owner.
	Pool *pgxpool.Pool
	// Name is the name of the database.
	Name string

	host *host
}

// Open makes a database with the reference schema, for programs without a testing.TB.
// Close drops it. If this process has started the server, the end of the process removes
// the server with its databases.
func Open(ctx context.Context) (*Database, error) {
	host, err := process.get(ctx)
	if err != nil {
		return nil, err
	}
	return host.open(ctx, reaper.Schema)
}

// Close closes the pool and drops the database, also when other connections to it are
// open. If a connection of the pool is still acquired after five seconds, Close drops the
// database and returns an error.
func (d *Database) Close() error {
	closed := closePool(d.Pool)
	ctx, cancel := context.WithTimeout(context.Background(), dropTimeout)
	defer cancel()
	_, err := d.host.admin.Exec(ctx, `drop database if exists `+pgx.Identifier{d.Name}.Sanitize()+` with (force)`)
	if err != nil {
		err = fmt.Errorf("pgtest: drop database %q: %w", d.Name, err)
	}
	return errors.Join(closed, err)
}

// open makes a database with a schema.
func (h *host) open(ctx context.Context, schema string) (*Database, error) {
	template := "template0"
	if schema != "" {
		var err error
		if template, err = h.template(ctx, schema); err != nil {
			return nil, fmt.Errorf("pgtest: %w", err)
		}
	}
	name := "pgtest_" + token()
	if err := h.clone(ctx, template, name); err != nil {
		return nil, fmt.Errorf("pgtest: create database: %w", err)
	}
	config := h.admin.Config()
	config.ConnConfig.Database = name
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pgtest: connect to database %q: %w", name, err)
	}
	return &Database{Pool: pool, Name: name, host: h}, nil
}

// clone creates a database from a template.
func (h *host) clone(ctx context.Context, template, name string) error {
	from, to := pgx.Identifier{template}.Sanitize(), pgx.Identifier{name}.Sanitize()
	_, err := h.admin.Exec(ctx, `create database `+to+` template `+from)
	return err
}

// closePool closes a pool with a timeout. Pool.Close waits for ever for a connection that a
// failed test has not released.
func closePool(pool *pgxpool.Pool) error {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		pool.Close()
	}()
	select {
	case <-closed:
		return nil
	case <-time.After(dropTimeout):
		return fmt.Errorf("pgtest: %w %s after the test, release it", errAcquired, dropTimeout)
	}
}
