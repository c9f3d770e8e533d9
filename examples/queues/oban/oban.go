// Package oban maps the reaper to the table of Oban, a queue for Elixir.
package oban

import (
	"cmp"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/reaper"
)

// Config reaps oban_jobs. longest is the longest time that a job may run: the longest
// timeout/1 of the workers, and some time in which it takes effect. Too low, and jobs run
// twice at once. Put workers without a timeout, which is the default, into ExceptKinds.
// If you have the Lifeline plugin, set its rescue_after longer than this.
func Config(longest time.Duration) reaper.Config {
	return reaper.Config{
		Queue:      table(longest),
		DeadLetter: deadletter.InPlace{},
		Backoff:    backoff.PolicyFunc(delay),
	}
}

// table is oban_jobs. A reset job is retryable and not available, because Oban runs an
// available job at once, whatever its scheduled_at is.
func table(longest time.Duration) reaper.Table {
	return reaper.Table{
		Name: pgx.Identifier{"oban_jobs"},
		Columns: reaper.Columns{
			JobID:       "id",
			JobKind:     "worker",
			State:       "state",
			Attempts:    "attempt",
			MaxAttempts: "max_attempts",
			ScheduledAt: "scheduled_at",
			LeaseOwner:  "attempted_by",
			LeaseUntil:  "attempted_at",
			LastError:   reaper.None, // errors is a jsonb[]
		},
		States:        reaper.States{Leased: "executing", RetryWaiting: "retryable", DeadLetter: "discarded"},
		LeaseLength:   cmp.Or(longest, time.Hour), // as long as the library waits by default
		CountsAtClaim: true,
		TimesInUTC:    true,
		OnReset: reaper.Set{
			"attempted_at": reaper.Keep,
			"attempted_by": reaper.Keep,
			"discarded_at": nil,
		},
		OnMove: reaper.Set{
			"attempted_at": reaper.Keep,
			"attempted_by": reaper.Keep,
			"discarded_at": reaper.Now,
		},
	}
}

// Letters are Oban's discarded jobs, for deadletter.List, Redrive and Purge.
func Letters() deadletter.Store {
	return deadletter.Store{
		Queue:   table(0).DeadLetterQueue(),
		InPlace: true,
		MovedAt: "discarded_at",
	}
}

// delay is Oban's own without its jitter: 15 + 2^attempts seconds.
func delay(attempts int, _ int64) int64 {
	return 15 + 1<<min(attempts, 20)
}
