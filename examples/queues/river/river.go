// Package river maps the reaper to the tables of River, a queue for Go.
package river

import (
	"cmp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config reaps river_job. longest is the longest time that a job may run: the JobTimeout
// of the clients, or the longest Timeout of a worker if that is longer, and some time in
// which a worker notices it. Too low, and jobs run twice at once; too high, and jobs of
// dead workers wait longer.
//
// Put kinds whose workers have no timeout (-1) into ExceptKinds.
func Config(longest time.Duration) reaper.Config {
	return reaper.Config{
		Queue:      table(longest),
		DeadLetter: deadletter.InPlace{},
		Backoff:    backoff.PolicyFunc(delay),
	}
}

// table is river_job. In a job that waits or is finished, River keeps the time of the
// last attempt and the clients that had it. So the reaper keeps both.
func table(longest time.Duration) reaper.Table {
	return reaper.Table{
		Name: pgx.Identifier{"river_job"},
		Columns: reaper.Columns{
			JobID:       "id",
			JobKind:     "kind",
			State:       "state",
			Attempts:    "attempt",
			MaxAttempts: "max_attempts",
			ScheduledAt: "scheduled_at",
			LeaseOwner:  "attempted_by",
			LeaseUntil:  "attempted_at",
			LastError:   reaper.None, // errors is a jsonb[]
		},
		States:        reaper.States{Leased: "running", RetryWaiting: "retryable", DeadLetter: "discarded"},
		LeaseLength:   cmp.Or(longest, time.Hour), // as long as the library waits by default
		CountsAtClaim: true,
		OnReset: reaper.Set{
			"attempted_at": reaper.Keep,
			"attempted_by": reaper.Keep,
			"finalized_at": nil,
		},
		OnMove: reaper.Set{
			"attempted_at": reaper.Keep,
			"attempted_by": reaper.Keep,
			"finalized_at": reaper.Now,
		},
	}
}

// Letters are River's discarded jobs, for deadletter.List, Redrive and Purge.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   table(0).DeadLetterQueue(),
		InPlace: true,
		MovedAt: "finalized_at",
	}
}

// delay is River's own without its jitter: the fourth power of the attempts, in seconds.
func delay(attempts int, _ int64) int64 {
	n := int64(min(attempts, 100))
	return n * n * n * n
}
