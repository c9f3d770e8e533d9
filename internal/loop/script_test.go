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
	errDown   = errors.New("unreachable")
	errSlow   = errors.New("it took too long")
)

// boot is a primary.
var boot = loop.Server{Started: time.Unix(0, 0)}

// config is the configuration of a loop with its defaults.
var config = loop.Config{Batch: 1000, Interval: 30 * time.Second, MinInterval: time.Second, Settle: 30 * time.Second}

// script is a Work with given results of polls, reaps and writes. The last of each is
// repeated. Without any, a reap and a write succeed.
type script struct {
	polls  []poll
	reaps  []reap
	writes []error

	log     []entry
	batches []int // of the reaps
}

type poll struct {
	result   loop.PollResult
	err      error
	took     time.Duration
	fullTook time.Duration // instead, when all is polled
}

type reap struct {
	refused bool
	err     error
}

// entry is one action of the loop, with its time since the beginning.
type entry struct {
	at   time.Duration
	what string
}

func (s *script) note(what string) { s.log = append(s.log, entry{time.Since(start()), what}) }

// start is the time at which the clock of a synctest bubble begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// next removes and returns the first of a list. It keeps the last.
func next[T any](list *[]T) (value T) {
	if len(*list) > 0 {
		value = (*list)[0]
	}
	if len(*list) > 1 {
		*list = (*list)[1:]
	}
	return value
}

func (s *script) Poll(_ context.Context, all bool) (loop.PollResult, error) {
	p := next(&s.polls)
	what, took := "poll", p.took
	if all {
		what, took = "poll all", max(p.took, p.fullTook)
	}
	s.note(what)
	<-time.After(took)
	p.result.Elapsed = took
	return p.result, p.err
}

func (s *script) Reap(_ context.Context, batch int) (bool, error) {
	s.note("reap")
	s.batches = append(s.batches, batch)
	r := next(&s.reaps)
	return r.refused, r.err
}

func (s *script) TryWrite(context.Context) error {
	s.note("write")
	return next(&s.writes)
}

func (s *script) Settling(context.Context, time.Duration) { s.note("settle") }

func (*script) Fault(err error) loop.Fault {
	return map[error]loop.Fault{errDown: loop.Outage, errSlow: loop.TimedOut}[err]
}

// play runs a script for a duration and returns the actions.
func play(t *testing.T, s *script, cfg loop.Config, lasting time.Duration) []entry {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), lasting, errors.New("the end"))
		defer cancel()
		require.EqualError(t, loop.Run(ctx, s, cfg), "the end")
	})
	return s.log
}

func idle() loop.PollResult { return loop.PollResult{Server: boot, Uptime: time.Hour} }

func stale() loop.PollResult {
	result := idle()
	result.Stale = true
	return result
}

// answer is the result of a poll on a server, with a stale lease.
func answer(server loop.Server) loop.PollResult {
	result := stale()
	result.Server = server
	return result
}

func due(in time.Duration) loop.PollResult {
	result := idle()
	result.NextExpiry = &in
	return result
}

// within requires an action between two times.
func within(t *testing.T, e entry, what string, from, to time.Duration) {
	t.Helper()
	require.Equal(t, what, e.what)
	require.GreaterOrEqual(t, e.at, from, what)
	require.LessOrEqual(t, e.at, to, what)
}

// whats returns the actions, with full polls as polls.
func whats(log []entry) []string {
	list := make([]string, len(log))
	for i, e := range log {
		list[i] = strings.TrimSuffix(e.what, " all")
	}
	return list
}

// count returns how often an action was done.
func count(log []string, what string) (n int) {
	for _, did := range log {
		if did == what {
			n++
		}
	}
	return n
}
