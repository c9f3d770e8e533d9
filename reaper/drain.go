package reaper

import (
	"context"
	"errors"
)

// DrainResult adds up what the batches of a drain did.
type DrainResult struct {
	Refused         bool   `json:"refused"`          // a gate was closed, at the first batch or a later one
	Reason          string `json:"reason,omitempty"` // why it was refused
	Batches         int    `json:"batches"`          // that found something
	ResetCount      int    `json:"reset_count"`
	DeadLetterCount int    `json:"dead_letter_count"`
	FailedCount     int    `json:"failed_count"` // jobs turned away; each is tried once
}

// Drain applies batch after batch, each in a transaction of its own, until the
// backlog is through, or a gate closes in between; then the result is Refused and
// still holds what was done before. It goes through the backlog once, oldest lease
// first, so jobs that are turned away or locked by someone else are passed and do
// not hide those behind them. Memory does not grow with the backlog.
//
// Drains that meet on a queue, those of [Reaper.Run] among them, make way for each
// other: one goes on at the oldest leases, and each of the others leaps ahead to a
// lease end that chance picks, goes on to the end, and then through what it left
// out. They tell by an advisory lock, which none waits for and which ends with the
// batch's transaction; where something else holds it, the order is lost and nothing
// more.
//
// On an error the result holds what was committed before it, unlike elsewhere.
// The errors are those of [Reaper.Apply]. When ctx ends, the batch under way is
// rolled back.
func (r *Reaper) Drain(ctx context.Context, actor string, batch int) (*DrainResult, error) {
	if err := errors.Join(checkLimit(batch), checkActor(actor)); err != nil {
		return &DrainResult{}, err
	}
	total := &DrainResult{}
	err := r.drain(ctx, order{actor: actor, limit: batch}, func(result *ApplyResult, err error) {
		if err == nil {
			total.add(result)
		}
	})
	return total, err
}

// drain applies batch after batch over the order's stretch, and reports each. One
// that is crowded leaps ahead, goes on to the end, and comes back for what it
// left out. It leaves out one part at a time, so it keeps no list of them.
func (r *Reaper) drain(ctx context.Context, o order, report func(*ApplyResult, error)) error {
	var left *stretch
	for {
		o.asks = left == nil
		result, found, err := r.apply(ctx, o)
		report(result, err)
		switch {
		case err != nil || result.Refused:
			return err
		case len(found.jobs) == o.limit:
			o.behind = found.jobs[o.limit-1].place()
			if found.crowded {
				o.stretch, left = o.leap(found.now.Add(-r.cfg.Grace))
			}
		case left != nil:
			o.stretch, left = *left, nil
		default:
			return nil
		}
	}
}

func (total *DrainResult) add(result *ApplyResult) {
	if result.Refused {
		total.Refused, total.Reason = true, result.Reason
		return
	}
	if len(result.Actions)+result.FailedCount > 0 {
		total.Batches++
	}
	total.ResetCount += result.ResetCount
	total.DeadLetterCount += result.DeadLetterCount
	total.FailedCount += result.FailedCount
}
