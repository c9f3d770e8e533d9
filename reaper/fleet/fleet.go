package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/lease-governance/leasereaper/reaper"
)

// Config says who the members of a fleet are. Members is required.
type Config struct {
	// Members returns the current members, in the order of the outcomes. [Fleet.Run] calls it
	// again every Interval, and sooner after an error; each other call calls it once. Return
	// the same DB for a name as long as it serves: a new DB, or a new Config, replaces the
	// member. Its ctx ends after a minute.
	//
	// Two Configs are the same if their data is. Functions count as the same if their code
	// is, whatever they capture, so they may be made anew at each call. Pointers, and maps
	// inside a source, a mover or a policy of the caller's, are the same only if they are
	// identical. The Logger is not compared.
	//
	// After an error, a panic, or a list that has a name twice, Run keeps the last list, and
	// logs that once when it begins and once when it ends.
	Members func(ctx context.Context) ([]Member, error)

	// Released is called by [Fleet.Run] for each member that it does not use any more: its
	// loop has ended, or was never started, and its pool may be closed. That is also so for a
	// member that was replaced, whose DB the new one may still have, and for all members at
	// the end of the Run. It returns before the next member of that name is started, if the
	// former had a loop. A panic in it is logged. Default nil.
	Released func(Member)

	// Parallel is how many members DryRun, Drain and Verify ask at once. Too low, and members
	// that do not answer delay the others; too high, and members on the same server compete
	// with each other. CloseGates asks all at once. Default 8.
	Parallel int

	// Logger gets what concerns the fleet: a list that failed, a member that panicked. A
	// member whose Config has no Logger gets it too, with its name as the attribute member.
	// Default nil: nothing is logged.
	Logger *slog.Logger
}

// Fleet runs the reapers of many databases. It is made by New, and may be used by any number
// of goroutines at once.
type Fleet struct {
	cfg   Config
	known atomic.Pointer[[]Member] // the last list without a fault; nil: none yet
}

const defaultParallel = 8

// New makes a Fleet. It does no I/O, and does not call Members. Its error holds every fault
// of cfg at once: [ErrNoMembers], [ErrNegative].
func New(cfg Config) (*Fleet, error) {
	var faults []error
	if cfg.Members == nil {
		faults = append(faults, ErrNoMembers)
	}
	if cfg.Parallel < 0 {
		faults = append(faults, fmt.Errorf("%w: Parallel %d", ErrNegative, cfg.Parallel))
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	cfg.Parallel = cmp.Or(cfg.Parallel, defaultParallel)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Fleet{cfg: cfg}, nil
}

// membersTimeout is how long Members may take. Without a limit a half-open connection to the
// directory of members would hide new members until TCP gives up.
const membersTimeout = time.Minute

// list asks for the members. A list that has a name twice is an error.
func (f *Fleet) list(ctx context.Context) (members []Member, err error) {
	ctx, cancel := context.WithTimeout(ctx, membersTimeout)
	defer cancel()
	err = recoverPanic(func() (err error) {
		members, err = f.cfg.Members(ctx)
		return err
	})
	if err == nil {
		err = checkNames(members)
	}
	if err != nil {
		return nil, fmt.Errorf("fleet: list members: %w", err)
	}
	f.known.Store(&members)
	return members, nil
}

// reaper makes a member's Reaper.
func (f *Fleet) reaper(m Member) (*reaper.Reaper, error) {
	if m.Name == "" {
		return nil, ErrMemberName
	}
	if m.Config.Logger == nil {
		m.Config.Logger = f.logger(m)
	}
	return reaper.New(m.DB, m.Config)
}

// logger has a member's name in each record.
func (f *Fleet) logger(m Member) *slog.Logger {
	return f.cfg.Logger.With(slog.String("member", m.Name))
}

// release says that a member is not used any more.
func (f *Fleet) release(ctx context.Context, m Member) {
	if f.cfg.Released == nil {
		return
	}
	err := recoverPanic(func() error {
		f.cfg.Released(m)
		return nil
	})
	if err != nil {
		f.logger(m).LogAttrs(ctx, slog.LevelError, "released panicked", slog.Any("err", errors.Unwrap(err)))
	}
}
