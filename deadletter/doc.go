// Package deadletter stores the jobs whose attempts are used up, and sends them back.
//
// The reaper locks such jobs, bumps their attempts and hands the whole batch to
// a [Mover], inside its own transaction. The mover stores them and returns one
// [Receipt] a job; the reaper then closes the queue rows. [Table] copies the
// rows into a dead-letter table, [Function] calls a function of the database,
// [MoverFunc] adapts a function of yours:
//
//	reaper.New(pool, reaper.Config{
//		DeadLetter: deadletter.Table{Name: pgx.Identifier{"ops", "dead_jobs"}},
//	})
//
// Those who look after the letters list them with [List], send their jobs back to
// the queue with [Redrive] and remove them with [Purge]. What these work on is a
// [Store]; its zero value is the reference schema's:
//
//	page, err := deadletter.List(ctx, pool, deadletter.Store{}, deadletter.Filter{Kinds: kinds}, 100)
//	result, err := deadletter.Redrive(ctx, pool, deadletter.Store{}, "alice", deadletter.Filter{Kinds: kinds}, 100)
//	purged, err := deadletter.Purge(ctx, pool, deadletter.Store{}, 90*24*time.Hour, deadletter.PurgeConfig{})
//
// # Guarantees
//
// A job that a mover refuses stays in the queue as it was, its attempts
// included, and so does every job when the transaction fails.
//
// [Table] copies rows inside the server: large numbers and columns the library
// knows nothing of arrive as they were.
//
// A queue row and its letters never disagree, whoever reaps, redrives and purges
// at the same time: a job comes back in the transaction that marks its letters,
// and only then; it comes back once; and its queue row goes with its last
// unredriven letter. If you requeue a job manually, set redriven_at on its letters:
// else [Redrive] may requeue it again once its queue row is gone.
//
// A queue row that is gone comes back as its letter has it; what JSON cannot hold is
// listed at [Redrive].
//
// Nothing that someone else has locked holds up the others for longer than
// Store.LockTimeout.
//
// Payloads are read by [ListWithJobs] alone. No error and no failure holds one, not
// even where a trigger of yours raises it.
//
// # Concurrency
//
// Everything here is a value without state, or a function, and safe for concurrent
// use.
package deadletter
