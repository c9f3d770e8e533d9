// Package mapped gives the programs around the library, its tool and its console, a queue's
// mapping for statements of their own.
package mapped

import (
	"github.com/lease-governance/leasereaper/internal/mapping"
	"github.com/lease-governance/leasereaper/reaper"
)

// Queue describes a reaper's queue as the library's statements are made of it, with the
// defaults.
func Queue(t reaper.Table) mapping.Queue {
	q := t.DeadLetterQueue()
	return mapping.Queue{
		Table: q.Table, JobID: q.JobID, JobKind: q.JobKind, State: unlessNone(q.State), ScheduledAt: q.ScheduledAt,
		Attempts: q.Attempts, MaxAttempts: unlessNone(q.MaxAttempts), LostLeases: q.LostLeases,
		LeaseOwner: unlessNone(q.LeaseOwner), LeaseUntil: q.LeaseUntil, LeaseSeconds: t.Columns.LeaseSeconds,
		LastError: q.LastError, Leased: q.Leased, RetryWaiting: q.RetryWaiting, DeadLetter: q.DeadLetter,
		LeaseLength: t.LeaseLength, CountsAtClaim: t.CountsAtClaim, TimesInUTC: t.TimesInUTC,
		Maximum: t.MaxAttempts, ExtraAttempts: t.ExtraAttempts, MaxLostLeases: t.MaxLostLeases,
		Only: t.Only, OnReset: t.OnReset, OnMove: t.OnMove,
	}
}

// unlessNone is the name of a column that may be missing; it is then empty.
func unlessNone(name string) string {
	if name == reaper.None {
		return ""
	}
	return name
}
