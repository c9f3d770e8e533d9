package soak

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Sample is what was seen of a queue since the last sample.
type Sample struct {
	Seconds float64 `json:"seconds"` // since the start
	Held    bool    `json:"held"`    // the old transaction was open, by the server's own view

	TableBytes int64 `json:"table_bytes"`
	IndexBytes int64 `json:"index_bytes"`
	DeadRows   int64 `json:"dead_rows"` // as the server counts them
	WALBytes   int64 `json:"wal_bytes"`
	Vacuums    int64 `json:"vacuums"`
	Updates    int64 `json:"updates"`
	HotUpdates int64 `json:"hot_updates"`

	IdlePoll Times `json:"idle_poll"` // of the loops
	Overdue  Times `json:"overdue"`   // at the reap
	Claim    Times `json:"claim"`     // of the workers

	Done   int     `json:"done"` // jobs that the workers ended
	Late   int     `json:"late"` // of those, by workers that had been dead
	Reset  int     `json:"reset"`
	Moved  int     `json:"moved"`
	Failed int     `json:"failed"` // passes of the loops with an error, a refusal or a rejected job
	Rate   float64 `json:"rate"`   // jobs that ended, a second
}

// oldName is the application name of the connection with the old transaction.
const oldName = "soak-old"

// reading is what the server shows. What it counts, it counts from the start.
type reading struct {
	at time.Time

	TableBytes, IndexBytes, DeadRows       int64
	WALBytes, Vacuums, Updates, HotUpdates int64

	Held bool
}

// sqlRead reads sizes and counters of the queue.
//
//	$1 the application name of the old transaction's connection  text
const sqlRead = `-- soak.read
select
    pg_table_size(relid) as table_bytes,
    pg_indexes_size(relid) as index_bytes,
    n_dead_tup as dead_rows,
    (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint as wal_bytes,
    autovacuum_count as vacuums,
    n_tup_upd as updates,
    n_tup_hot_upd as hot_updates,
    exists (
        select from pg_stat_activity where application_name = $1 and backend_xmin is not null
    ) as held
from pg_stat_user_tables
where relname = 'job_queue'`

func read(ctx context.Context, pool *pgxpool.Pool) (reading, error) {
	rows, err := pool.Query(ctx, sqlRead, oldName)
	if err != nil {
		return reading{}, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByName[reading])
	r.at = time.Now()
	return r, err
}

// forget starts anew: what happened before is in no sample.
func (s *site) forget(ctx context.Context) (err error) {
	s.tally.take()
	s.last, err = read(ctx, s.watcher)
	return err
}

// sample takes a sample.
func (s *site) sample(ctx context.Context, began time.Time) error {
	now, err := read(ctx, s.watcher)
	if err != nil {
		return err
	}
	noted, seconds := s.tally.take(), now.at.Sub(s.last.at).Seconds()
	s.samples = append(s.samples, Sample{
		Seconds: now.at.Sub(began).Seconds(), Held: now.Held,
		TableBytes: now.TableBytes, IndexBytes: now.IndexBytes, DeadRows: now.DeadRows,
		WALBytes: now.WALBytes - s.last.WALBytes, Vacuums: now.Vacuums - s.last.Vacuums,
		Updates: now.Updates - s.last.Updates, HotUpdates: now.HotUpdates - s.last.HotUpdates,
		IdlePoll: timesOf(noted.polls), Overdue: timesOf(noted.overdue), Claim: timesOf(noted.claims),
		Done: noted.done, Late: noted.late, Reset: noted.reset, Moved: noted.moved, Failed: noted.failed,
		Rate: float64(noted.done) / seconds,
	})
	s.last = now
	return nil
}
