package bed

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/oracle"
	"github.com/lease-governance/leasereaper/reaper"
)

// Shape is how the reference tables are filled. Rows are 330 bytes wide. One row
// in ten waits for a worker, and one in a hundred has a lease that lives.
type Shape struct {
	Rows  int
	Stale int
	// Exhausted is how many percent of the stale leases belong to jobs that
	// have no attempt left.
	Exhausted int
	// Dense has the stale rows side by side in the table, the oldest lease
	// first. Otherwise they are spread over the whole table and their leases
	// ended in no order.
	Dense bool
}

// Fixture is the reference tables with rows of the shape, open gates, and the
// reference functions.
func (s Shape) Fixture() Fixture {
	return Fixture{
		Name: fmt.Sprintf("%+v", s),
		Fill: s.fill,
		WarmUp: []string{
			`select count(payload) from job_queue`,
			`set enable_seqscan = off`,
			`select count(job_id) from job_queue`,
		},
	}
}

// sqlFill fills the queue.
//
//	$1 rows       bigint
//	$2 stale      bigint
//	$3 dense      boolean
//	$4 exhausted  bigint, in percent
//
//go:embed fill.sql
var sqlFill string

const sqlOpenGates = `-- bed.open_gates
insert into queue_config (key, value)
values
  ('queue.job_substrate.enabled', 'true'),
  ('queue.lease.reaper_enabled', 'true'),
  ('queue.lease.reaper_dry_run_only', 'false')`

func (s Shape) fill(ctx context.Context, conn *pgx.Conn) error {
	for _, sql := range []string{reaper.Schema, oracle.Functions, sqlOpenGates} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	_, err := conn.Exec(ctx, sqlFill, s.Rows, s.Stale, s.Dense, s.Exhausted)
	return err
}
