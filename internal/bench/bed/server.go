// Package bed is what the benchmarks lie on: a PostgreSQL of their own that is
// set up like one in production, and databases on it that are filled once and
// cloned as often as they are needed.
package bed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// settings are those of a production server with a few gigabytes of memory. What
// is not here is PostgreSQL's default. pgtest adds fsync, synchronous_commit and
// full_page_writes, all on: a commit that costs nothing would flatter whoever
// makes many. Vacuum and checkpoints happen when a benchmark says so, so that
// they fall into nobody's turn.
func settings(small bool) map[string]string {
	s := map[string]string{
		"shared_buffers":     "4GB",
		"min_wal_size":       "4GB",
		"max_wal_size":       "16GB",
		"checkpoint_timeout": "1h",
		"autovacuum":         "off",
	}
	if small {
		s["shared_buffers"], s["min_wal_size"] = "128MB", "80MB"
	}
	return s
}

// Server is a PostgreSQL and the templates of its databases. Its methods are for one
// goroutine.
type Server struct {
	postgres  *pgtest.Server
	admin     *pgxpool.Pool
	small     bool
	settings  map[string]string
	templates map[string]string // by the name of their fixture
	databases int
}

// Start starts the server. A small one has little memory and no fsync, for a run
// in which no figure means anything.
func Start(ctx context.Context, small bool) (*Server, error) { return StartWith(ctx, small, nil) }

// StartWith starts a server with settings that override this package's.
func StartWith(ctx context.Context, small bool, override map[string]string) (*Server, error) {
	set := settings(small)
	maps.Copy(set, override)
	server, err := pgtest.Start(ctx, pgtest.ServerConfig{Fsync: !small, Settings: set})
	if err != nil {
		return nil, err
	}
	admin, err := pgxpool.New(ctx, server.ConnString("postgres"))
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return &Server{postgres: server, admin: admin, small: small, settings: set, templates: map[string]string{}}, nil
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	s.admin.Close()
	return s.postgres.Stop()
}

// Log returns the path of the server's log.
func (s *Server) Log() string { return filepath.Join(s.postgres.Folder(), "log") }

// Setting is a line about where figures were measured.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Settings returns the server's version and what it is set to.
func (s *Server) Settings(ctx context.Context) ([]Setting, error) {
	names := slices.Concat(
		[]string{"server_version", "fsync", "synchronous_commit", "full_page_writes"},
		slices.Sorted(maps.Keys(s.settings)),
	)
	list := make([]Setting, len(names))
	for i, name := range names {
		list[i].Name = name
		if err := s.admin.QueryRow(ctx, `select current_setting($1)`, name).Scan(&list[i].Value); err != nil {
			return nil, fmt.Errorf("bed: read setting %q: %w", name, err)
		}
	}
	return list, nil
}

// create makes a database, as a clone of another or of an empty one.
func (s *Server) create(ctx context.Context, template string) (string, error) {
	s.databases++
	name := fmt.Sprintf("bench_%d", s.databases)
	from, to := pgx.Identifier{template}.Sanitize(), pgx.Identifier{name}.Sanitize()
	if _, err := s.admin.Exec(ctx, `create database `+to+` template `+from); err != nil {
		return "", fmt.Errorf("bed: create database: %w", err)
	}
	return name, nil
}
