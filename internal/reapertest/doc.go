// Package reapertest has what the library's tests share: queues to reap, a log reader, a
// proxy that loses messages, counters of round trips, and a ledger of what was
// committed.
package reapertest
