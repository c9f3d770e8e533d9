// Package gates answers one question: may this apply go ahead?
//
// Operators open three gates on purpose before a reaper may write. Each is a
// boolean setting under a fixed key; they are checked in this order, and the
// first closed one is the reason for the refusal:
//
//	1  queue.job_substrate.enabled       unset means false   open when true
//	2  queue.lease.reaper_enabled        unset means false   open when true
//	3  queue.lease.reaper_dry_run_only   unset means true    open when false
//
// After them comes a window, if one is set: once the database's clock has passed
// its end, the apply is refused. Unset bounds nothing.
//
//	queue.lease.reaper_window_until   a time, as in [Values.Window]
//
// A [Source] reads the settings inside the transaction that acts on them.
// [Table] reads a settings table and locks what it read, [CurrentSetting] reads
// what is stored for the database or the role, [Static] holds fixed answers,
// [SourceFunc] adapts a function.
//
//	settings := gates.Table{Name: pgx.Identifier{"ops", "settings"}}
//	reaper.New(pool, reaper.Config{Gates: settings})
//
// Operators change the settings in a table with [Table.OpenWindow],
// [Table.CloseWindow], [Table.Set] and [Table.Unset], which write who and when.
//
//	until, err := settings.OpenWindow(ctx, pool, "ops@example.com", time.Hour)
//
// # Guarantees
//
// Only a value that PostgreSQL takes for a boolean opens a gate. Anything else
// is a [*ValueError], and nothing is changed; so is a window's end that is no time.
//
// With [Table] the gates are a fence: when a transaction that closes a gate has
// committed, no apply commits after it. A window that passes is none: an apply that
// began before its end is finished.
//
// # Concurrency
//
// Everything here is a value without state and safe for concurrent use.
package gates
