// Package backoff computes how long a job waits before its next attempt.
//
// [Exponential] is the default: the delay doubles with each attempt, up to the eleventh.
// With a base of 10 seconds:
//
//	attempts   1   2   3   4    5    6    7     8     9    10     11 and more
//	seconds   10  20  40  80  160  320  640  1280  2560  5120  10240
//
// The leases of a dead worker expire together, and without jitter its jobs are retried in
// the same second. [Exponential.Jitter] spreads them:
//
//	reaper.New(pool, reaper.Config{
//		Backoff: backoff.Exponential{Jitter: 0.5},
//	})
//
// # Guarantees
//
// For any input, a delay is a whole number of seconds from 0 to [MaxSec].
// Arithmetic saturates instead of overflowing.
//
// # Concurrency
//
// All types are values without state, and safe for concurrent use.
package backoff
