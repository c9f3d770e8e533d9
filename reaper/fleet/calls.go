package fleet

import (
	"context"

	"github.com/lease-governance/leasereaper/reaper"
)

// DryRun calls [reaper.Reaper.DryRun] for each member, for at most [Config.Parallel] at once.
// The outcomes are in the members' order. What happens to one member is its outcome's Err and
// does not keep the others from being asked. When ctx ends, members that were not asked yet
// have its cause as Err. A member that does not answer delays the call until ctx ends.
//
// The error is that of Members, or [ErrDuplicateMember] if it names one twice.
func (f *Fleet) DryRun(ctx context.Context, limit int) ([]Outcome[reaper.DryRunResult], error) {
	return ask(ctx, f, func(ctx context.Context, r *reaper.Reaper) (*reaper.DryRunResult, error) {
		return r.DryRun(ctx, limit)
	})
}

// Drain calls [reaper.Reaper.Drain] for each member, otherwise as [Fleet.DryRun]. An outcome
// with an error also has the result: what was committed before the error.
func (f *Fleet) Drain(ctx context.Context, actor string, batch int) ([]Outcome[reaper.DrainResult], error) {
	return ask(ctx, f, func(ctx context.Context, r *reaper.Reaper) (*reaper.DrainResult, error) {
		return r.Drain(ctx, actor, batch)
	})
}

// Verify calls [reaper.Reaper.Verify] for each member, otherwise as [Fleet.DryRun].
func (f *Fleet) Verify(ctx context.Context) ([]Outcome[reaper.Report], error) {
	return ask(ctx, f, func(ctx context.Context, r *reaper.Reaper) (*reaper.Report, error) {
		return r.Verify(ctx)
	})
}

// ask calls call with the Reaper of each member.
func ask[T any](
	ctx context.Context, f *Fleet, call func(context.Context, *reaper.Reaper) (*T, error),
) ([]Outcome[T], error) {
	members, err := f.list(ctx)
	if err != nil {
		return nil, err
	}
	return each(ctx, members, f.cfg.Parallel, func(ctx context.Context, m Member) (*T, error) {
		r, err := f.reaper(m)
		if err != nil {
			return nil, err
		}
		return call(ctx, r)
	}), nil
}
