package reaper

import (
	"cmp"
	"context"
	"errors"
)

// DrainResult adds up what the batches of a drain did.
type DrainResult struct {
	Refused         bool   `json:"refused"`          // at the first batch or a later one
	Reason          string `json:"reason,omitempty"` // why it was refused
	Batches         int    `json:"batches"`          // that found something
	ResetCount      int    `json:"reset_count"`
	DeadLetterCount int    `json:"dead_letter_count"`
	FailedCount     int    `json:"failed_count"` // jobs that were rejected; each is tried once
}

// Drain applies batch after batch, each in a transaction of its own, until it has gone
// through the backlog or a batch is refused: by a gate that closes in between, or by
// [Config.MaxStale]. Then the result is Refused and still holds what was done before.
// It goes through the backlog once, oldest lease
// first, so jobs that are rejected, or locked by someone else, do not keep those after
// them from being reaped. Memory does not grow with the backlog.
//
// Concurrent drains, those of [Reaper.Run] among them, divide the backlog: each
// skips what the others have locked.
//
// When the mover can move nothing, a batch with nothing but jobs to be moved is an
// error; the drain goes on after it all the same, and returns the first such error
// at its end.
//
// On an error the result holds what was committed before it, unlike elsewhere.
// The errors are those of [Reaper.Apply]. When ctx ends, the batch under way is
// rolled back.
func (r *Reaper) Drain(ctx context.Context, actor string, batch int) (*DrainResult, error) {
	if err := errors.Join(checkLimit(batch), checkActor(actor)); err != nil {
		return &DrainResult{}, err
	}
	total := &DrainResult{}
	err := r.drain(ctx, request{actor: actor, limit: batch}, func(result *ApplyResult, err error) {
		if err == nil {
			total.add(result)
		}
	})
	return total, err
}

// drain applies batch after batch, and reports each.
func (r *Reaper) drain(ctx context.Context, req request, report func(*ApplyResult, error)) error {
	var blocked error
	for {
		result, more, err := r.apply(ctx, req)
		report(result, err)
		switch {
		case err != nil && !errors.As(err, new(*blockedError)):
			return err
		case err != nil:
			blocked = cmp.Or(blocked, err)
		case result.Refused:
			return blocked
		}
		if more == nil {
			return blocked
		}
		req.after = *more
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
