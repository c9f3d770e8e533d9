package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/reaper"
)

// replica is one of several reapers on a queue, which calls in its own way, again
// and again, whatever comes of it.
type replica struct {
	*storm
	*reaper.Reaper
	name     string
	call     string
	limit    int
	patience time.Duration // with each call; 0: no bound
	breaks   bool          // its mover does, for a while
}

// replicas are the ways in which the storm's reapers call.
var replicas = map[string]struct {
	call     string
	limit    int
	proxied  bool
	patience time.Duration
	breaks   bool
}{
	"run":             {call: "run", limit: 10, patience: 2 * time.Second},
	"run by proxy":    {call: "run", limit: 100, patience: 2 * time.Second, proxied: true},
	"drain":           {call: "drain", limit: 3},
	"drain by proxy":  {call: "drain", limit: 2, proxied: true},
	"apply by proxy":  {call: "apply", limit: 2, proxied: true},
	"apply in a rush": {call: "apply", limit: 5, patience: 20 * time.Millisecond},
	"mover breaks":    {call: "apply", limit: 20, breaks: true},
}

func (r *replica) reap(ctx context.Context) {
	for i := 0; pause(ctx, upTo(40*time.Millisecond)); i++ {
		r.once(ctx, fmt.Sprintf("%s/%d", r.name, i))
	}
}

// once calls under the name of an actor that no other call has.
func (r *replica) once(ctx context.Context, actor string) {
	if r.patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, upTo(r.patience))
		defer cancel()
	}
	switch r.call {
	case "apply":
		result, err := r.Apply(ctx, actor, r.limit)
		r.heard(actor, result, err)
	case "drain":
		result, err := r.Drain(ctx, actor, r.limit)
		r.add("jobs rejected", result.FailedCount) // it does not say why
		r.took(actor, result.ResetCount+result.DeadLetterCount, result.Reason, err)
	case "run":
		err := r.Run(ctx, actor, reaper.RunConfig{
			Batch: r.limit, Interval: 100 * time.Millisecond, MinInterval: 30 * time.Millisecond, Settle: time.Nanosecond,
			OnPass: func(_ context.Context, pass reaper.Pass) { r.heard(actor, pass.Result, pass.Err) },
		})
		if !errors.Is(err, context.Cause(ctx)) {
			r.fault("Run ended with %v", err)
		}
	}
}

func (r *replica) heard(actor string, result *reaper.ApplyResult, err error) {
	if err != nil {
		result = &reaper.ApplyResult{}
	}
	for _, failure := range result.Failures {
		if failure.SQLState != "55P03" && !r.breaks {
			r.fault("%s: %+v", actor, failure)
		}
	}
	r.add("jobs rejected", result.FailedCount)
	r.took(actor, len(result.Actions), result.Reason, err)
}

// took notes what a call came to. No gate closes, and jobs are rejected only where the
// mover breaks, or somebody's lock holds up a row for longer than stormLockTimeout.
func (r *replica) took(actor string, reaped int, reason string, err error) {
	r.memo.Write(actor, reaped, err)
	if reason != "" {
		r.fault("%s: reason %q", actor, reason)
	}
	switch {
	case err == nil:
	case errors.Is(err, errInjected):
		r.add("hooks that failed", 1)
	case reapertest.IsUnknown(err):
		r.add("commits of unknown outcome", 1)
		fallthrough
	default:
		r.met("reapers' errors", err)
	}
}

// errInjected is an error of OnApply's.
var errInjected = errors.New("the hook fails")

// writeReapsOrFail is a Config.OnApply that fails now and then, when all is
// written: it must all be undone.
func writeReapsOrFail(ctx context.Context, tx pgx.Tx, result *reaper.ApplyResult) error {
	if err := reapertest.WriteReaps(ctx, tx, result); err != nil {
		return err
	}
	if rand.IntN(20) == 0 {
		return errInjected
	}
	return nil
}

// slowSource lets time pass between the start of the transaction, which is its now(),
// and the claim: time in which workers renew and finish.
func slowSource(ctx context.Context, tx pgx.Tx, keys []string) (gates.Values, error) {
	if rand.IntN(3) == 0 {
		pause(ctx, upTo(50*time.Millisecond))
	}
	return gates.Table{}.Read(ctx, tx, keys)
}
