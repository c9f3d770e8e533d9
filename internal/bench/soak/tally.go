package soak

import (
	"sync"

	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/reaper"
)

// tally is what the load noted since the last sample.
type tally struct {
	mu sync.Mutex
	counts
}

// counts are those of one sample.
type counts struct {
	polls, overdue, claims []float64 // seconds

	done, late, reset, moved, failed int
}

// Times are the durations of a sample, in seconds.
type Times struct {
	Count  int     `json:"count"` // without any, the others are 0
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

func timesOf(values []float64) Times {
	if len(values) == 0 {
		return Times{}
	}
	return Times{Count: len(values), Median: stat.Quantile(values, 0.5), P99: stat.Quantile(values, 0.99)}
}

// pass notes what a loop did. An idle pass is a poll that found nothing.
func (t *tally) pass(pass reaper.Pass) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if pass.Err != nil || pass.Result.Refused || pass.Result.FailedCount > 0 {
		t.failed++
		return
	}
	if len(pass.Result.Actions) == 0 {
		t.polls = append(t.polls, pass.Took.Seconds())
	}
	for _, action := range pass.Result.Actions {
		t.overdue = append(t.overdue, action.Overdue.Seconds())
	}
	t.reset += pass.Result.ResetCount
	t.moved += pass.Result.DeadLetterCount
}

// claim notes how long a claim took.
func (t *tally) claim(seconds float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.claims = append(t.claims, seconds)
}

// finish notes how many jobs a worker ended, and whether it had been dead before.
func (t *tally) finish(jobs int, returned bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.done += jobs
	if returned {
		t.late += jobs
	}
}

// take returns what was noted, and starts anew.
func (t *tally) take() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	taken := t.counts
	t.counts = counts{}
	return taken
}
