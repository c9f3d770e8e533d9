// Package gates decides whether an apply may go ahead.
//
// An apply writes only while all gates are open. Operators open them. Each gate is a
// boolean setting under a fixed key. The gates are checked in this order, and the
// first closed one is the reason for the refusal:
//
//	1  queue.job_substrate.enabled       unset means false   open when true
//	2  queue.lease.reaper_enabled        unset means false   open when true
//	3  queue.lease.reaper_dry_run_only   unset means true    open when false
//
// Then the window is checked. Once the database's clock has passed the window's end,
// an apply is refused. Without a window there is no limit.
//
//	queue.lease.reaper_window_until   a time, as in [Values.Window]
//
// A [Source] reads the settings inside the transaction of the apply. [Table] reads a
// settings table and locks the rows that it reads. [CurrentSetting] reads the settings
// that are stored for the database or the role. [Static] holds fixed values.
// [SourceFunc] adapts a function.
//
//	settings := gates.Table{Name: pgx.Identifier{"ops", "settings"}}
//	reaper.New(pool, reaper.Config{Gates: settings})
//
// Operators change the settings in a table with [Table.OpenWindow],
// [Table.CloseWindow], [Table.Set] and [Table.Unset]. These store the actor and the
// time of the change.
//
//	until, err := settings.OpenWindow(ctx, pool, "ops@example.com", time.Hour)
//
// # Guarantees
//
// Only a value that PostgreSQL accepts as a boolean opens a gate. Any other value, or a
// window's end that is not a time, is a [*ValueError], and the apply changes nothing.
//
// With [Table] the gates are a fence: once a transaction that closes a gate has
// committed, no apply commits. The end of a window is not a fence: an apply that began
// before the end may commit after it.
//
// # Concurrency
//
// All types are values without state, and safe for concurrent use.
package gates
