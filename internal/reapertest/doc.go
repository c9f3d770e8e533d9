// Package reapertest has the fixtures of the library's tests: queues with stale jobs, loops,
// a log, a proxy that loses messages, a counter of round trips, and a ledger that finds
// jobs that were reaped wrongly.
package reapertest
