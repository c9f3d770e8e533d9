package service

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5/pgxpool"
)

// ErrNotAURL is OpenPool's error for a connection string that does not parse. The
// parser's own may quote a part of the password.
var ErrNotAURL = errors.New("service: not a PostgreSQL connection string")

// spare is how many connections there are besides those for the slots: for the
// claim, the reaper, the metrics and /readyz.
const spare = 4

// OpenPool opens a pool that is large enough for a service: a renewal that waits
// for a connection, behind jobs that are being completed, comes too late. With a
// pool_max_conns above that in the connection string it is as large as that says.
// The name is what pg_stat_activity shows. It does not connect yet.
func OpenPool(ctx context.Context, url, name string, slots int) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, ErrNotAURL
	}
	config.ConnConfig.RuntimeParams["application_name"] = name
	config.MaxConns = max(config.MaxConns, int32(slots)+spare) //nolint:gosec // slots are few
	return pgxpool.NewWithConfig(ctx, config)
}
