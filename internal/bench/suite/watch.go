package suite

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
)

// wal returns how many bytes of WAL the server wrote while do ran.
func wal(ctx context.Context, watch *pgxpool.Pool, do func() error) (int64, error) {
	before, err := position(ctx, watch)
	if err != nil {
		return 0, err
	}
	if err := do(); err != nil {
		return 0, err
	}
	after, err := position(ctx, watch)
	return after - before, err
}

// position is how much WAL there ever was.
func position(ctx context.Context, watch *pgxpool.Pool) (bytes int64, err error) {
	const sql = `-- bench.position
select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint`
	err = watch.QueryRow(ctx, sql).Scan(&bytes)
	return bytes, err
}

// transaction returns the number of the next transaction that writes.
func transaction(ctx context.Context, watch *pgxpool.Pool) (number int64, err error) {
	const sql = `-- bench.transaction
select pg_snapshot_xmax(pg_current_snapshot())::text::bigint`
	err = watch.QueryRow(ctx, sql).Scan(&number)
	return number, err
}

// lockedSince counts the rows that transactions from a number on have locked or
// written: a row lock leaves its transaction's number in the row.
func lockedSince(ctx context.Context, watch *pgxpool.Pool, number int64) (rows int, err error) {
	const sql = `-- bench.locked
select count(*)
from (select xmax from job_queue union all select xmax from queue_config) rows
where xmax::text::bigint >= $1::bigint`
	err = watch.QueryRow(ctx, sql, number).Scan(&rows)
	return rows, err
}
