package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// connectTimeout bounds the wait for the server that DATABASE_URL names.
const connectTimeout = 10 * time.Second

var errNotAURL = errors.New("DATABASE_URL is not a PostgreSQL connection string")

// server is where the example finds its PostgreSQL. A service has a pool of its
// own and needs nothing of this file.
type server struct {
	config *pgxpool.Config
	close  func() error
}

// connect makes a temporary database, or tries the one that url names.
func connect(ctx context.Context, out io.Writer, url string) (*server, error) {
	if url == "" {
		fmt.Fprintln(out, "DATABASE_URL is not set: making a temporary database.")
		return openTemporary(ctx)
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errNotAURL // the parser's own error may quote a part of the password
	}
	if err := try(ctx, config.ConnConfig); err != nil {
		return nil, fmt.Errorf("DATABASE_URL: %s", oneLine(err))
	}
	return &server{config: config, close: func() error { return nil }}, nil
}

// openTemporary makes a database that ends with this program, on a server that
// it starts for that if need be.
func openTemporary(ctx context.Context) (*server, error) {
	database, err := pgtest.Open(ctx)
	if err != nil {
		return nil, errors.Join(err, pgtest.Shutdown())
	}
	return &server{
		config: database.Pool.Config(),
		close:  func() error { return errors.Join(database.Close(), pgtest.Shutdown()) },
	}, nil
}

// try connects once.
func try(ctx context.Context, config *pgx.ConnConfig) error {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// oneLine joins the lines of an error: pgx gives one to each way it tried, and
// the same one to the same way with and without TLS.
func oneLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimSpace(line)
	}
	return strings.Join(slices.Compact(lines), " ")
}
