package pgtest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jackc/pgx/v5/pgxpool"
)

// host is a server to make databases on.
type host struct {
	// server is nil if this process did not start the server.
	server *Server
	admin  *pgxpool.Pool

	mu sync.Mutex
	// templates has the names of the template databases that exist, by schema.
	templates map[string]string
}

// newHost finds a server or starts one.
func newHost(ctx context.Context, environment Environment) (*host, error) {
	source, err := environment.Find(ctx)
	if err != nil {
		return nil, err
	}
	if source.Config != nil {
		return connectHost(ctx, nil, source.Config)
	}
	server, err := launch(ctx, source.Bin, ServerConfig{})
	if err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(server.ConnString("postgres"))
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	h, err := connectHost(ctx, server, config)
	if err != nil {
		return nil, errors.Join(err, server.Stop())
	}
	return h, nil
}

// connectHost makes the pool that creates and drops databases.
func connectHost(ctx context.Context, server *Server, config *pgxpool.Config) (*host, error) {
	admin, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	return &host{server: server, admin: admin, templates: map[string]string{}}, nil
}

// check returns an error if this process has started the server and the server has ended.
func (h *host) check() error {
	if h.server == nil {
		return nil
	}
	return h.server.check()
}

// close stops the server if this process started it.
func (h *host) close() error {
	h.admin.Close()
	if h.server == nil {
		return nil
	}
	return h.server.Stop()
}

// connInfo returns how to connect to a database, without a password.
func (h *host) connInfo(database string) string {
	if h.server != nil {
		return h.server.ConnString(database)
	}
	config := h.admin.Config().ConnConfig
	return fmt.Sprintf("host=%s port=%d user=%s dbname=%s", config.Host, config.Port, config.User, database)
}
