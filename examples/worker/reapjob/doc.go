// Package reapjob makes the reaper a job of the queue that it reaps: the kind
// queue.lease.reap.
//
// Its handler applies, and schedules the next reap job, in the transaction that
// completes the job itself. So either all three happen or none, and the chain has
// neither a gap nor a fork: a unique index lets there be one reap job at a time.
//
//	job, err := reapjob.New(pool, reapjob.Config{Actor: "billing-reaper"})
//	...
//	handlers[reapjob.Kind] = job.Handle
//	err = job.Seed(ctx) // unless there is one
//
// What this is good for: reaping is seen, paused, retried and measured like any
// other work, by the tools that are there for it.
//
// # The watchdog
//
// A worker may die with the reap job. That is a stale lease like any other, and
// the only one to find it would be the reap job, which nobody runs: from then on
// no dead worker's job comes back, and nobody says so. A reap job therefore needs
// a watchdog that is no job: [Reaper.Run], with a Grace so that it stays behind
// the reap job while that is alive. It also steps in when the reap job waits behind
// a backlog, and when ten full batches of rejected jobs stand before the others,
// which an apply does not get past. Its OnPass is the place to call Seed, in case
// the reap job is gone altogether, for instance to the dead letters.
//
// # After an outage
//
// While the server restarts, or nobody can write to it, no worker can renew, and the
// reap job may be the first that is claimed afterwards. It then reaps nothing, and
// its successor is due once the workers have had Settle to renew.
//
// [Reaper.Run]: https://pkg.go.dev/github.com/lease-governance/leasereaper/reaper#Reaper.Run
package reapjob
