package verify

import (
	"context"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// sqlHasCitus tells whether the database has the catalog of distributed tables.
const sqlHasCitus = `-- verify.has_citus
select to_regclass('pg_dist_partition') is not null`

// sqlDistributed tells whether Citus distributes a table. The tables of its shards are not in
// that catalog.
//
//	$1 table  oid
const sqlDistributed = `-- verify.distributed
select exists (select 1 from pg_dist_partition where logicalrelid = $1::oid)`

// distributed reports a queue that Citus distributes. What is planned over all shards says
// nothing of an apply on one, so no further statement is planned.
func (v *verifier) distributed(ctx context.Context, t *catalog.Table) error {
	var found bool
	if err := v.tx.QueryRow(ctx, sqlHasCitus).Scan(&found); err != nil || !found {
		return err
	}
	if err := v.tx.QueryRow(ctx, sqlDistributed, t.OID).Scan(&found); err != nil || !found {
		return err
	}
	v.blocksQueries = true
	v.error("distributed_table", t.SQL, "",
		"Citus distributes the queue: it refuses every apply on the whole table (0A000, FOR UPDATE over many shards). "+
			"Run one reaper for each shard, on the node that has it. Package reaper/fleet/citus finds them.")
	return nil
}
