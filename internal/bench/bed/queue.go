package bed

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Fixture is what a database holds. It is made once and cloned from then on.
type Fixture struct {
	// Name tells it from other fixtures.
	Name string
	// Fill makes the tables and the rows.
	Fill func(ctx context.Context, conn *pgx.Conn) error
	// WarmUp are queries that read what a clone should have in memory.
	WarmUp []string
}

// Queue is a database with a filled queue.
type Queue struct {
	Name string

	server *Server
	pools  []*pgxpool.Pool
}

// Clone clones the queue of a fixture. Its pages are in memory, and were written
// since the last checkpoint, as those of a busy queue are.
func (s *Server) Clone(ctx context.Context, fixture Fixture) (*Queue, error) {
	template, err := s.template(ctx, fixture)
	if err != nil {
		return nil, err
	}
	name, err := s.create(ctx, template)
	if err != nil {
		return nil, err
	}
	q := &Queue{Name: name, server: s}
	if err := s.with(ctx, name, func(conn *pgx.Conn) error { return warmUp(ctx, conn, fixture.WarmUp) }); err != nil {
		return nil, errors.Join(err, q.Close(ctx))
	}
	return q, nil
}

// template returns the database to clone for a fixture, and fills it at the first
// call.
func (s *Server) template(ctx context.Context, fixture Fixture) (string, error) {
	if name, ok := s.templates[fixture.Name]; ok {
		return name, nil
	}
	name, err := s.create(ctx, "template0")
	if err != nil {
		return "", err
	}
	err = s.with(ctx, name, func(conn *pgx.Conn) error {
		if err := fixture.Fill(ctx, conn); err != nil {
			return err
		}
		_, err := conn.Exec(ctx, `vacuum (analyze, freeze)`)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("bed: fill %s: %w", fixture.Name, err)
	}
	s.templates[fixture.Name] = name
	return name, nil
}

// with connects to a database for as long as do lasts: a connection would be in
// the way of whoever clones it.
func (s *Server) with(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, s.postgres.ConnString(database))
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(ctx))
}

// warmUp runs queries that read much, by index where they can.
func warmUp(ctx context.Context, conn *pgx.Conn, queries []string) error {
	for _, sql := range append([]string{`set max_parallel_workers_per_gather = 0`}, queries...) {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("bed: warm up: %w", err)
		}
	}
	return nil
}

// ConnString returns what connects to the database.
func (q *Queue) ConnString() string { return q.server.postgres.ConnString(q.Name) }

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
	if q.server.small {
		return nil
	}
	_, err := q.server.admin.Exec(context.WithoutCancel(ctx),
		`drop database `+pgx.Identifier{q.Name}.Sanitize()+` with (force)`)
	return err
}
