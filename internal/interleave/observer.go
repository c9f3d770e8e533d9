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

const sqlIsThere = `-- interleave.is_there
select exists (select from pg_stat_activity where pid = $1)`

// awaitEnd returns when a session has ended, and the server has rolled back what it did
// not commit.
func (o *observer) awaitEnd(ctx context.Context, pid uint32) error {
	for began := time.Now(); ; {
		var there bool
		if err := o.conn.QueryRow(ctx, sqlIsThere, int32(pid)).Scan(&there); err != nil || !there { //nolint:gosec // a pid fits
			return err
		}
		if time.Since(began) > patience {
			return ErrStuck
		}
	}
}
