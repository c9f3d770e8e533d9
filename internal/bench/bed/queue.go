package bed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Filling is what a database holds. It is made once and cloned from then on.
type Filling struct {
	// Name tells it from other fillings.
	Name string
	// Fill makes the tables and the rows.
	Fill func(ctx context.Context, conn *pgx.Conn) error
	// Warm are queries that read what a clone should have in memory.
	Warm []string
}

// Queue is a database with a filled queue.
type Queue struct {
	Name string

	bed   *Bed
	pools []*pgxpool.Pool
}

// Lay clones the queue of a filling. Its pages are in memory, and were written
// since the last checkpoint, as those of a busy queue are.
func (b *Bed) Lay(ctx context.Context, filling Filling) (*Queue, error) {
	template, err := b.template(ctx, filling)
	if err != nil {
		return nil, err
	}
	name, err := b.create(ctx, template)
	if err != nil {
		return nil, err
	}
	q := &Queue{Name: name, bed: b}
	if err := b.with(ctx, name, func(conn *pgx.Conn) error { return warm(ctx, conn, filling.Warm) }); err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

// template returns the database to clone for a filling, and fills it at the first
// call.
func (b *Bed) template(ctx context.Context, filling Filling) (string, error) {
	if name, ok := b.templates[filling.Name]; ok {
		return name, nil
	}
	name, err := b.create(ctx, "template0")
	if err != nil {
		return "", err
	}
	err = b.with(ctx, name, func(conn *pgx.Conn) error {
		if err := filling.Fill(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `vacuum (analyze, freeze)`)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("bed: fill %s: %w", filling.Name, err)
	}
	b.templates[filling.Name] = name
	return name, nil
}

// with connects to a database for as long as do lasts: a connection would be in
// the way of whoever clones it.
func (b *Bed) with(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, b.server.ConnString(database))
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

// warm runs queries that read much, by index where they can.
func warm(ctx context.Context, conn *pgx.Conn, queries []string) error {
	for _, sql := range append([]string{`set max_parallel_workers_per_gather = 0`}, queries...) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("bed: warm up: %w", err)
		}
	}
	return nil
}

// ConnString returns what connects to the database.
func (q *Queue) ConnString() string { return q.bed.server.ConnString(q.Name) }

// Connect returns a pool on the database, of one connection unless change allows
// more. It ends with the queue.
func (q *Queue) Connect(ctx context.Context, change ...func(*pgxpool.Config)) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(q.ConnString())
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

// Close closes the pools and drops the database, unless that takes longer than it
// frees room.
func (q *Queue) Close(ctx context.Context) error {
	for _, pool := range q.pools {
		pool.Close()
	}
	if q.bed.small {
		return nil
	}
	_, err := q.bed.admin.Exec(context.WithoutCancel(ctx),
		`drop database `+pgx.Identifier{q.Name}.Sanitize()+` with (force)`)
	return err
}
