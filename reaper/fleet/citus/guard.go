package citus

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtx"
)

// sqlGuard calls the function of guard.sql.
//
//	$1 shards  bigint[]
const sqlGuard = `-- citus.guard
select leasereaper_guard($1::bigint[])`

// codeMoved is the SQLSTATE with which the function says that a shard is not on the node.
const codeMoved = "LR001"

// guard queues the guard of shards.
func guard(shards []int64) func(*pgx.Batch) {
	return func(batch *pgx.Batch) {
		batch.Queue(sqlGuard, shards).Query(func(rows pgx.Rows) error {
			rows.Close()
			err := rows.Err()
			if pgtx.Code(err) == codeMoved {
				return fmt.Errorf("%w: %w", ErrMoved, err)
			}
			return err
		})
	}
}
