// Package reapertest is for the tests of the library: queues to reap, a log to read, a
// proxy that loses messages, counters of round trips, and a ledger of what was
// committed.
package reapertest
