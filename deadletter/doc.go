// Package deadletter takes over the jobs whose attempts are spent.
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
// # Guarantees
//
// A job that a mover refuses stays in the queue as it was, its attempts
// included, and so does every job when the transaction fails.
//
// [Table] copies rows inside the server: large numbers and columns the library
// knows nothing of arrive as they were.
//
// # Concurrency
//
// Everything here is a value without state and safe for concurrent use.
package deadletter
