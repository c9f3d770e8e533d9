// Package work runs the jobs of a queue.
//
// A [Worker] claims as many jobs as it has free slots. It runs each in a goroutine,
// renews its lease meanwhile, and ends it: completed, failed, or given back. Each kind
// of job has a [Handler]:
//
//	worker, err := work.New(q, work.Config{Handlers: map[string]work.Handler{
//		"send_invoice": sendInvoice,
//	}})
//	...
//	err = worker.Run(ctx) // until ctx ends and the running jobs have
//
// # Guarantees
//
// A handler's context ends when the lease is lost, or when it expires because it
// could not be renewed. A handler that watches its context stops before another
// worker runs the job, or a renewal later at most. What a handler does outside of the
// database may still happen twice, because a process that is paused cannot stop
// anything. What it does in [Done].Effects happens once.
//
// A lease is given back only when the handler has returned.
//
// # Concurrency
//
// Handlers are called concurrently.
package work
