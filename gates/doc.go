// Package gates decides whether an apply may go ahead.
//
// An apply may write only while all gates are open, which operators open on
// purpose. Each gate is a boolean setting under a fixed key. They are checked in
// this order, and the first closed one is the reason for the refusal:
//
//	1  queue.job_substrate.enabled       unset means false   open when true
//	2  queue.lease.reaper_enabled        unset means false   open when true
//	3  queue.lease.reaper_dry_run_only   unset means true    open when false
//
// After the gates the window is checked, if one is set: once the database's clock
// has passed its end, an apply is refused. Unset means no limit.
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
// [Table.CloseWindow], [Table.Set] and [Table.Unset]. These store who made the
// change and when.
//
//	until, err := settings.OpenWindow(ctx, pool, "ops@example.com", time.Hour)
//
// # Guarantees
//
// Only a value that PostgreSQL accepts as a boolean opens a gate. Any other value is
// a [*ValueError], and nothing is changed. So is a window's end that is not a time.
//
// With [Table] the gates are a fence: when a transaction that closes a gate has
// committed, no apply commits after it. The end of a window is not a fence: an apply
// that began before it is finished.
//
// # Concurrency
//
// All types are values without state, and safe for concurrent use.
package gates
