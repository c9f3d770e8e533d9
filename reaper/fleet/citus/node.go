package citus

import (
	"context"
	"crypto/tls"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
)

// node is the pool of a node. The members of its shards share it.
type node struct {
	pool    *pgxpool.Pool
	members int
}

// connect makes the pool of a node. It does not connect.
func (s *Shards) connect(ctx context.Context, at address) (*pgxpool.Pool, error) {
	config := s.coordinator.Config()
	conn := config.ConnConfig
	conn.Host, conn.Port = at.host, at.port
	setServerName(conn.TLSConfig, at.host)
	for _, fallback := range conn.Fallbacks { // the same node without TLS, say
		fallback.Host, fallback.Port = at.host, at.port
		setServerName(fallback.TLSConfig, at.host)
	}
	conn.RuntimeParams["citus.override_table_visibility"] = "off"
	if s.cfg.Node != nil {
		s.cfg.Node(config)
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("citus: pool of %s:%d: %w", at.host, at.port, err)
	}
	return pool, nil
}

// setServerName makes TLS expect the certificate of another host.
func setServerName(config *tls.Config, host string) {
	if config != nil && config.ServerName != "" {
		config.ServerName = host
	}
}
