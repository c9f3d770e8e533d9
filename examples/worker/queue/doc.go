// Package queue is the worker's side of the job queue: it claims jobs by leases,
// renews the leases, and ends the jobs.
//
//	jobs, err := q.Claim(ctx, kinds, 4)
//	...
//	err = q.Renew(ctx, jobs[0])
//	...
//	err = q.Complete(ctx, jobs[0], nil)
//	if errors.Is(err, queue.ErrLost) {
//		// somebody else has the job by now: drop what was done
//	}
//
// # Guarantees
//
// Whatever changes a job repeats the owner and the attempts that it was claimed
// with. The owner is new for each claim, so neither another worker nor this one,
// when it has claimed the job again, is taken for the one that lost it. When that
// touches no row, nothing has changed and the error is [ErrLost].
//
// When a lease ends is decided by the database's clock alone.
//
// # Concurrency
//
// A Queue may be used concurrently; a [Job] is a value.
package queue
