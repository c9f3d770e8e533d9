// Package interleave runs calls that share a database in every order in which their
// exchanges with it can happen. The calls and the server are real; only the network
// between them is held up.
//
// Each participant has a connection of its own. Before each exchange, a message of the
// client's and the server's whole answer, the connection stops until the scheduler lets
// it go on. One participant goes on at a time. Where its statement waits for a lock, the
// server says so (pg_blocking_pids), and the participant is set aside until it moves. So a
// list of who went on, a [Schedule], is all that decides what happens, and the same list
// has the same outcome. A connection can also be lost at an exchange, before the message
// arrives or after the server has answered.
//
//	stage := interleave.Open(ctx, config)
//	record, err := stage.Play(ctx, calls, schedule.Follow)
//
// [Every] goes through all schedules, depth first, and [Sample] through some of them.
//
// # Concurrency
//
// A Stage plays one schedule at a time. Stages on different databases are independent.
package interleave
