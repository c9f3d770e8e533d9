// Package reapjob makes the reaper a job of the queue that it reaps: the kind
// queue.lease.reap.
//
// Its handler applies and schedules the next reap job, in the transaction that
// completes the job itself. So either all three happen or none. A unique index makes
// sure that there is one reap job at a time.
//
//	job, err := reapjob.New(pool, reapjob.Config{Actor: "billing-reaper"})
//	...
//	handlers[reapjob.Kind] = job.Handle
//	err = job.Seed(ctx) // unless there is one
//
// So reaping is seen, paused, retried and measured like any other work, by the same
// tools.
//
// # The watchdog
//
// A worker may die while it runs the reap job. That job then has a stale lease, and
// no reap job runs that could find it: no dead worker's job comes back, and nobody
// is told. So a reap job needs a watchdog that is no job: [Reaper.Run], with a Grace,
// so that the reap job is first while it works. The watchdog also reaps when the reap
// job waits behind a backlog, and when ten full batches of rejected jobs hide the
// others from it. Its OnPass is the place to call Seed, in case the reap job is gone,
// for example to the dead letters.
//
// # After an outage
//
// While the server restarts, or nobody can write to it, no worker can renew. The reap
// job may be the first that is claimed afterwards. It then reaps nothing, and its
// successor runs after the workers have had Settle to renew.
//
// [Reaper.Run]: https://pkg.go.dev/github.com/lease-governance/leasereaper/reaper#Reaper.Run
package reapjob
