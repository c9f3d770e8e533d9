// Package queue is the worker's side of the job queue: it claims jobs by leases,
// renews the leases, and ends the jobs.
//
//	jobs, err := q.Claim(ctx, kinds, 4)
//	...
//	err = q.Renew(ctx, jobs[0])
//	...
//	err = q.Complete(ctx, jobs[0], nil)
//	if errors.Is(err, queue.ErrLost) {
//		// another worker has the job by now: discard the result
//	}
//
// # Guarantees
//
// Each change of a job repeats the owner and the attempts of its claim. If it updates
// no row, nothing has changed and the error is [ErrLost]. The owner is new for each
// claim. So a worker that lost a job cannot change it, even if it has claimed the job
// again since.
//
// Only the database's clock decides whether a lease has expired.
//
// # Concurrency
//
// A Queue may be used concurrently; a [Job] is a value.
package queue
