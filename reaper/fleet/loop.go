package fleet

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/lease-governance/leasereaper/reaper"
)

// start is a member that is to be started after a delay.
type start struct {
	member Member
	delay  time.Duration
}

// memberLoop runs the loop of a name, for one member after the other.
type memberLoop struct {
	run      *run
	name     string
	member   Member             // the one that has the loop
	stop     context.CancelFunc // ends the member's loop; nil: no loop runs
	stopping bool               // the loop was told to end
	late     bool               // it was logged that it has not
	next     *start             // what to start when the loop has ended; nil: nothing
}

// has reports whether a member is the one that is running or will be.
func (l *memberLoop) has(m Member) bool {
	if l.next != nil {
		return same(l.next.member, m)
	}
	return !l.stopping && same(l.member, m)
}

// wanted reports whether the name was in the last list.
func (l *memberLoop) wanted() bool { return l.next != nil || !l.stopping }

// replace ends the loop, and has s started after it. It returns the member that was to be
// started and will not be, unless that is the one whose loop ends.
func (l *memberLoop) replace(s *start) (unused []Member) {
	if l.next != nil && (l.stop == nil || !same(l.next.member, l.member)) {
		unused = append(unused, l.next.member)
	}
	l.next = s
	if l.stop != nil {
		l.stopping = true
		l.stop()
	}
	return unused
}

// keep runs loops until there is no next member.
func (l *memberLoop) keep(ctx context.Context) {
	for {
		memberCtx, s := l.take(ctx)
		if s == nil {
			return
		}
		sleep(memberCtx, s.delay)
		l.run.retry(memberCtx, s.member)
		l.stop()
		if l.leaves() {
			l.run.fleet.release(ctx, s.member)
		}
	}
}

// take makes the next member the one that runs. Without one the name is forgotten.
func (l *memberLoop) take(ctx context.Context) (context.Context, *start) {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	s := l.next
	if s == nil {
		delete(l.run.loops, l.name)
		return nil, nil
	}
	memberCtx, stop := context.WithCancel(ctx)
	l.member, l.stop, l.next = s.member, stop, nil
	l.stopping, l.late = ctx.Err() != nil, false
	return memberCtx, s
}

// leaves reports whether the member whose loop has ended is not the next one again, as one
// that was unlisted for a moment. From here on the next one is to be released by itself if it
// is not started.
func (l *memberLoop) leaves() bool {
	l.run.mu.Lock()
	defer l.run.mu.Unlock()
	l.stop = nil
	return l.next == nil || !same(l.next.member, l.member)
}

// retry runs a member's loop until ctx ends, and starts it again when it ends before.
func (r *run) retry(ctx context.Context, m Member) {
	waits := growing{first: r.cfg.MinInterval, longest: longestRetry}
	invalid := false
	for ctx.Err() == nil {
		began := time.Now()
		err := recoverPanic(func() error { return r.loop(ctx, m) })
		var panicked *panicError
		isPanic := errors.As(err, &panicked)
		if ctx.Err() != nil && !isPanic {
			return
		}
		if time.Since(began) > longestRetry {
			waits.reset()
		}
		wait := waits.next()
		if isPanic || !invalid {
			r.fleet.logger(m).LogAttrs(ctx, slog.LevelError, "member failed",
				slog.Any("err", err), slog.Duration("wait", wait))
		}
		invalid = !isPanic
		sleep(ctx, wait)
	}
}

// loop runs a member's loop. It returns before the end of ctx only if the member's Config is
// invalid.
func (r *run) loop(ctx context.Context, m Member) error {
	member, err := r.fleet.reaper(m)
	if err != nil {
		return err
	}
	cfg := r.cfg
	if cfg.OnPass != nil {
		cfg.OnPass = func(ctx context.Context, pass reaper.Pass) {
			pass.Member = m.Name
			r.cfg.OnPass(ctx, pass)
		}
	}
	return member.Run(ctx, r.actor, cfg)
}
