package reaper

import (
	"time"

	"github.com/lease-governance/leasereaper/internal/pgtx"
	"github.com/lease-governance/leasereaper/internal/stmt"
)

// attempt is one transaction of an apply.
type attempt struct {
	r   *Reaper
	req request

	mode         mode
	conflicts    int  // how many attempts before it ended in one
	lookFirst    bool // read the gates before the claim, so that a closed one is told first
	lockTimedOut bool // the attempt before it waited for a lock in vain

	tx      *pgtx.Tx
	planner plannerSettings
	tables  stmt.Tables
	baseSec int64     // the backoff base
	now     time.Time // the transaction's start, by the database's clock
	jobs    []*claimedJob
	skipped []Skip  // jobs of a plan that were not claimed
	more    *cursor // not nil: the last batch was full, and ended here
	blocked error   // not nil: no job could be moved, and why
}

// request is what an apply is asked to do.
type request struct {
	actor  string
	limit  int
	claims int    // how many batches it may claim; 0: one
	after  cursor // where it begins
	plan   []Job  // nil: the oldest stale leases

	exclude string // the parameter of the claim; "": none

	timeout time.Duration // 0: as long as it takes
}

// mode is how an attempt settles its jobs.
type mode int

const (
	modeFast    mode = iota // all at once
	modeIsolate             // in groups, so that the rejected jobs stand alone
	// modeIsolateConstraints also checks deferred constraints for each group. It is a
	// mode of its own because OnApply may write what a deferred constraint asks
	// for: with a hook they are checked early only after they failed the commit.
	modeIsolateConstraints
)
