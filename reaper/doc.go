// Package reaper recovers jobs whose lease has expired: each is rescheduled with a
// backoff or, once its attempts are used up, moved to the dead letters.
//
// A worker claims a job by setting the row's state to leased, with an owner and
// an end. When the worker dies, nobody finishes the job and nobody gives it
// back. [Reaper.DryRun] shows such jobs and what would become of them.
// [Reaper.Apply] claims a batch of them with FOR UPDATE SKIP LOCKED, oldest
// lease first, counts the failed try, and resets each job with a delay or moves
// it to the dead letters, all in one transaction. Operators open three gates
// before it may, for a window of time if they want; see package gates.
// [Reaper.Run] does so for as long as a service lives, and [Reaper.Drain] until
// the backlog is settled. [Reaper.Verify] says beforehand what is wrong with a
// set-up.
//
//	r, err := reaper.New(pool, reaper.Config{Logger: slog.Default()})
//	if err != nil {
//		return err
//	}
//	return r.Run(ctx, "billing-reaper", reaper.RunConfig{})
//
// # Guarantees
//
// An apply commits whole or leaves no trace. Of any number of reapers one reaps
// a given stale lease, once. A lease that is not stale is never touched, also
// when its renewal races the reaper. A dry run cannot write. The number of round
// trips does not depend on the size of the batch, as long as no row is rejected,
// and a row that is rejected does not stop the others. No clock but the database's
// decides whether a lease is stale.
//
// A job whose handler hangs while its heartbeat goes on keeps its lease, and is
// never reaped: handlers need deadlines of their own. The reaper sends no NOTIFY,
// since a job that is reset is not ready at the commit but after its backoff.
//
// # Concurrency
//
// A Reaper on a pool is safe for concurrent use. On a connection or in a
// transaction it is as little so as these are.
package reaper
