// Package reaper recovers jobs whose lease has expired: each is rescheduled with a
// backoff or, once its attempts are used up, moved to the dead letters.
//
// A worker claims a job by setting the row's state to leased, with an owner and
// an end. When the worker dies, nobody finishes the job and nobody gives it
// back. [Reaper.DryRun] shows such jobs and what an apply would do with them.
// [Reaper.Apply] claims a batch of them with FOR UPDATE SKIP LOCKED, oldest
// lease first. It counts the failed try, and resets each job with a delay or moves
// it to the dead letters, all in one transaction. It does so only while three
// gates are open, which operators open on purpose; see package gates.
// [Reaper.Drain] applies until the backlog is through, [Reaper.Run] as long as a
// service lives. [Reaper.Verify] reports what is wrong with a set-up. Package fleet runs
// the reapers of many databases as one.
//
//	r, err := reaper.New(pool, reaper.Config{Logger: slog.Default()})
//	if err != nil {
//		return err
//	}
//	return r.Run(ctx, "billing-reaper", reaper.RunConfig{})
//
// # Guarantees
//
// An apply commits as a whole or leaves no trace. However many reapers run, one of
// them reaps a given stale lease, once. A lease that is not stale is never touched,
// even when its renewal races the reaper. A dry run cannot write. The number of round
// trips does not depend on the size of the batch, as long as no row is rejected.
// A row that is rejected does not stop the others. Only the database's clock
// decides whether a lease is stale.
//
// A job whose handler hangs while its heartbeat goes on keeps its lease, and is
// never reaped: give handlers a deadline. The owner of a lease must be new for each
// claim: after a redrive, attempts begin at 0 again, so owner and attempts would
// repeat otherwise. The reaper sends no NOTIFY, because a reset job is not ready at
// the commit, but after its backoff.
//
// # Concurrency
//
// A Reaper on a pool is safe for concurrent use. On a connection or in a
// transaction it is not, as these are not.
package reaper
