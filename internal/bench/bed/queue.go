package bed

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/reaper"
)

// Shape is how a queue is filled. Its rows are 330 bytes wide. One stale lease in
// ten belongs to a job whose tries are spent.
type Shape struct {
	Rows  int
	Stale int
	// Dense has the stale rows side by side in the table, the oldest lease
	// first. Otherwise they are spread over the whole table and their leases
	// ended in no order.
	Dense bool
}

// sqlFill fills the queue.
//
//	$1 rows   bigint
//	$2 stale  bigint
//	$3 dense  boolean
//
//go:embed fill.sql
var sqlFill string

// Queue is a database with a filled queue, open gates, and the reference
// functions.
type Queue struct {
	Name string

	bed   *Bed
	pools []*pgxpool.Pool
}

// Lay clones a queue of a shape. Its pages are in memory, and were written since
// the last checkpoint, as those of a busy queue are.
func (b *Bed) Lay(ctx context.Context, shape Shape) (*Queue, error) {
	template, err := b.template(ctx, shape)
	if err != nil {
		return nil, err
	}
	name, err := b.create(ctx, template)
	if err != nil {
		return nil, err
	}
	q := &Queue{Name: name, bed: b}
	if err := q.warm(ctx); err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

// template returns the database to clone for a shape, and fills it at the first
// call.
func (b *Bed) template(ctx context.Context, shape Shape) (string, error) {
	if name, ok := b.templates[shape]; ok {
		return name, nil
	}
	name, err := b.create(ctx, "template0")
	if err != nil {
		return "", err
	}
	if err := b.fill(ctx, name, shape); err != nil {
		return "", fmt.Errorf("bed: fill: %w", err)
	}
	b.templates[shape] = name
	return name, nil
}

// fill closes its connection, which would prevent the cloning.
func (b *Bed) fill(ctx context.Context, name string, shape Shape) error {
	conn, err := pgx.Connect(ctx, b.server.ConnString(name))
	if err != nil {
		return err
	}
	steps := []error{
		execute(ctx, conn, reaper.Schema),
		execute(ctx, conn, oracle.Functions),
		execute(ctx, conn, sqlOpenGates),
		execute(ctx, conn, sqlFill, shape.Rows, shape.Stale, shape.Dense),
		execute(ctx, conn, `vacuum (analyze, freeze)`),
	}
	return errors.Join(append(steps, conn.Close(ctx))...)
}

func execute(ctx context.Context, conn *pgx.Conn, sql string, arguments ...any) error {
	_, err := conn.Exec(ctx, sql, arguments...)
	return err
}

const sqlOpenGates = `-- bed.open_gates
insert into queue_config (key, value)
values
  ('queue.job_substrate.enabled', 'true'),
  ('queue.lease.reaper_enabled', 'true'),
  ('queue.lease.reaper_dry_run_only', 'false')`

// warm reads the table and its key into memory.
func (q *Queue) warm(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, q.bed.server.ConnString(q.Name))
	if err != nil {
		return err
	}
	err = errors.Join(
		execute(ctx, conn, `set max_parallel_workers_per_gather = 0`),
		execute(ctx, conn, `select count(payload) from job_queue`),
		execute(ctx, conn, `set enable_seqscan = off`),
		execute(ctx, conn, `select count(job_id) from job_queue`),
	)
	return errors.Join(err, conn.Close(ctx))
}

// Connect returns a pool on the queue's database, of one connection unless change
// allows more. It ends with the queue.
func (q *Queue) Connect(ctx context.Context, change ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(q.bed.server.ConnString(q.Name))
	if err != nil {
		return nil, err
	}
	config.MaxConns = 1
	for _, c := range change {
		c(config)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	q.pools = append(q.pools, pool)
	return pool, nil
}

// Close drops the database.
func (q *Queue) Close(ctx context.Context) error {
	for _, pool := range q.pools {
		pool.Close()
	}
	_, err := q.bed.admin.Exec(context.WithoutCancel(ctx),
		`drop database `+pgx.Identifier{q.Name}.Sanitize()+` with (force)`)
	return err
}
