// Package work runs the jobs of a queue.
//
// A [Worker] claims as many jobs as it has free slots, runs each in a goroutine,
// renews its lease meanwhile, and ends it: completed, failed, or given back. Jobs
// are done by a [Handler], one for each kind:
//
//	worker, err := work.New(q, work.Config{Handlers: map[string]work.Handler{
//		"send_invoice": sendInvoice,
//	}})
//	...
//	err = worker.Run(ctx) // until ctx ends and the running jobs have
//
// # Guarantees
//
// A handler's context ends when the lease is lost, or could not be renewed until
// it ran out, so that a handler which heeds it stops before another worker's
// takes the job up, or at most a renewal later. What a handler does outside of
// the database may happen twice all the same: a worker that stands still cannot
// stop anything. What it does in [Done].Effects happens once.
//
// A lease is given back only when the handler has returned.
//
// # Concurrency
//
// Handlers are called concurrently.
package work
