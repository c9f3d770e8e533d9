package suite

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
)

// sqlKill has workers claim jobs that wait, and die.
//
//	$1 how many  bigint
const sqlKill = `-- bench.kill
update job_queue
set state = 'leased', lease_owner = 'worker', lease_until = now() - interval '1 second'
where job_id = any(array(select job_id from job_queue where state = 'ready' limit $1::bigint))`

// kill has workers die.
func kill(ctx context.Context, worker *pgxpool.Pool, jobs int) error {
	_, err := worker.Exec(ctx, sqlKill, jobs)
	return err
}

// sqlRenew is a worker's renewal, of a lease shorter than anybody would want.
const sqlRenew = `-- bench.renew
update job_queue
set state = 'leased', lease_owner = 'worker', lease_until = now() + interval '30 milliseconds'
where job_id = $1`

const sqlFinish = `-- bench.finish
update job_queue
set state = 'succeeded', lease_owner = null, lease_until = null
where job_id = $1`

// renew renews the lease of one job until ctx ends, tells of each renewal, and then
// finishes the job.
func renew(ctx context.Context, pool *pgxpool.Pool, renewed func()) error {
	var job pgtype.UUID
	if err := pool.QueryRow(ctx, `select job_id from job_queue limit 1`).Scan(&job); err != nil {
		return err
	}
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			_, err := pool.Exec(context.WithoutCancel(ctx), sqlFinish, job)
			return err
		case <-ticker.C:
			if _, err := pool.Exec(context.WithoutCancel(ctx), sqlRenew, job); err != nil {
				return err
			}
			renewed()
		}
	}
}
