package interleave

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrStuck is the error of participants that neither move nor wait for a lock.
var ErrStuck = errors.New("interleave: a participant neither moves nor waits for a lock")

// patience bounds each wait for the server.
const patience = 20 * time.Second

// observer asks the server about the participants' sessions.
type observer struct{ conn *pgx.Conn }

const sqlWaiting = `-- interleave.waiting
select pid
from unnest($1::int[]) pid
where cardinality(pg_blocking_pids(pid)) > 0`

// waiting are those of the sessions that wait for a lock.
func (o *observer) waiting(ctx context.Context, pids []uint32) (map[uint32]bool, error) {
	rows, err := o.conn.Query(ctx, sqlWaiting, pids)
	if err != nil {
		return nil, err
	}
	waiting := map[uint32]bool{}
	var pid uint32
	_, err = pgx.ForEachRow(rows, []any{&pid}, func() error {
		waiting[pid] = true
		return nil
	})
	return waiting, err
}
