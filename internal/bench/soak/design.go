package soak

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/reaper"
)

// design is a queue's tables.
type design struct {
	name string
	set  string // SQL, after the tables were made and before they are filled
}

// designs are compared. Everything but set is the same.
var designs = []design{
	{name: "reference schema"},
	{name: "set for a queue", set: Settings},
}

// Settings is what an operator should set for the queue's table: a run of autovacuum for
// each few thousand dead rows, however large the table is.
const Settings = `alter table job_queue set (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 5000
)`

// later is how many jobs are scheduled for a day that the soak does not reach. They are
// the part of the table that does not change. A soak of some minutes has fewer.
func (c Config) later() int { return min(500_000, 500*int(c.Length.Seconds())) }

// sqlLater adds them.
//
//	$1 how many  bigint
const sqlLater = `-- soak.later
insert into job_queue (job_kind, payload, scheduled_at)
select 'later', jsonb_build_object('order', n, 'note', repeat(md5(n::text), 6)), now() + interval '7 days'
from generate_series(1, $1::bigint) as n`

const sqlOpenGates = `-- soak.open_gates
insert into queue_config (key, value)
values
  ('queue.job_substrate.enabled', 'true'),
  ('queue.lease.reaper_enabled', 'true'),
  ('queue.lease.reaper_dry_run_only', 'false')`

// fixture has the tables as they are when the soak starts.
func (d design) fixture(later int) bed.Fixture {
	return bed.Fixture{
		Name:   d.name,
		WarmUp: []string{`select count(payload) from job_queue`},
		Fill: func(ctx context.Context, conn *pgx.Conn) error {
			for _, sql := range []string{reaper.Schema, sqlOpenGates, d.set} {
				if _, err := conn.Exec(ctx, sql); err != nil {
					return err
				}
			}
			_, err := conn.Exec(ctx, sqlLater, later)
			return err
		},
	}
}
