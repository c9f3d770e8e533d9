// Package deadletter stores the jobs whose attempts are used up, and sends them back.
//
// The reaper locks such jobs, adds one to their attempts and gives the whole batch
// to a [Mover], inside its own transaction. The mover stores the jobs and returns
// one [Receipt] for each. The reaper then closes the queue rows. [Table] copies the
// rows into a dead-letter table, [Function] calls a function of the database,
// [MoverFunc] adapts a function of yours:
//
//	reaper.New(pool, reaper.Config{
//		DeadLetter: deadletter.Table{Name: pgx.Identifier{"ops", "dead_jobs"}},
//	})
//
// Operators list dead letters with [List], send their jobs back to the queue with
// [Redrive] and remove old letters with [Purge]. All three work on a [Store], whose
// zero value is the reference schema's:
//
//	page, err := deadletter.List(ctx, pool, deadletter.Store{}, deadletter.Filter{Kinds: kinds}, 100)
//	result, err := deadletter.Redrive(ctx, pool, deadletter.Store{}, "alice", deadletter.Filter{Kinds: kinds}, 100)
//	purged, err := deadletter.Purge(ctx, pool, deadletter.Store{}, 90*24*time.Hour, deadletter.PurgeConfig{})
//
// # Guarantees
//
// A job that a mover refuses stays in the queue as it was, its attempts
// included. If the transaction fails, so does every job.
//
// [Table] copies rows inside the server. Large numbers, and columns that the library
// does not know, are stored as they were.
//
// A queue row and its letters never disagree, whoever reaps, redrives and purges
// at the same time. A job comes back only in the transaction that marks its letters,
// and only once. Its queue row is removed together with its last unredriven letter.
// If you requeue a job manually, set redriven_at on its letters. Otherwise [Redrive]
// may requeue it again after its queue row is deleted.
//
// A queue row that is gone is rebuilt from its letter. The comment of [Redrive] lists
// what JSON cannot hold.
//
// A letter or a queue row that another transaction has locked is skipped. Other locks,
// such as those of foreign keys, of unique keys and of DDL, are waited for as long as
// Store.LockTimeout. What is locked for longer does not stop the rest.
//
// Only [ListWithJobs] reads payloads. No error and no failure contains one, even if a
// trigger of yours raises it.
//
// # Concurrency
//
// All types are values without state. They and the functions are safe for concurrent
// use.
package deadletter
