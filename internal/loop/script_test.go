package loop_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/loop"
)

var (
	errServer = errors.New("the server's error")
	errDown   = errors.New("out of reach")
	boot      = time.Unix(0, 0)
)

// config is that of a loop with its defaults.
var config = loop.Config{Interval: 30 * time.Second, MinInterval: time.Second, Settle: 30 * time.Second}

// script is work whose looks and reaps are laid down beforehand. The last of
// each is repeated.
type script struct {
	looks []look
	reaps []reap

	log []entry
}

type look struct {
	sight loop.Sight
	err   error
	took  time.Duration
}

type reap struct {
	refused bool
	err     error
}

// entry is one thing that the loop did, and when, since it began.
type entry struct {
	at   time.Duration
	what string
}

func (s *script) note(what string) { s.log = append(s.log, entry{time.Since(start()), what}) }

// start is when the clock of a test's bubble begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func (s *script) Look(_ context.Context, all bool) (loop.Sight, error) {
	next := s.looks[0]
	if len(s.looks) > 1 {
		s.looks = s.looks[1:]
	}
	if all {
		s.note("look at all")
	} else {
		s.note("look")
	}
	<-time.After(next.took)
	return next.sight, next.err
}

func (s *script) Reap(context.Context) (bool, error) {
	s.note("reap")
	next := reap{}
	if len(s.reaps) > 0 {
		next = s.reaps[0]
	}
	if len(s.reaps) > 1 {
		s.reaps = s.reaps[1:]
	}
	return next.refused, next.err
}

func (s *script) Settling(context.Context, time.Duration) { s.note("settle") }

func (*script) Unreachable(err error) bool { return errors.Is(err, errDown) }

// play runs a script for a while and returns what was done.
func play(t *testing.T, s *script, cfg loop.Config, lasting time.Duration) []entry {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), lasting, errors.New("the end"))
		defer cancel()
		require.EqualError(t, loop.Run(ctx, s, cfg), "the end")
	})
	return s.log
}

func idle() loop.Sight { return loop.Sight{Server: boot, Uptime: time.Hour} }

func stale() loop.Sight {
	sight := idle()
	sight.Stale = true
	return sight
}

func due(in time.Duration) loop.Sight {
	sight := idle()
	sight.Due = &in
	return sight
}

// within requires that something was done between two times.
func within(t *testing.T, e entry, what string, from, to time.Duration) {
	t.Helper()
	require.Equal(t, what, e.what)
	require.GreaterOrEqual(t, e.at, from, what)
	require.LessOrEqual(t, e.at, to, what)
}

// whats is what was done, one kind of look like the other.
func whats(log []entry) []string {
	list := make([]string, len(log))
	for i, e := range log {
		list[i] = strings.TrimSuffix(e.what, " at all")
	}
	return list
}
