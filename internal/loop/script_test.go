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

// boot is a server that takes writes.
var boot = loop.Server{Started: time.Unix(0, 0)}

// config is that of a loop with its defaults.
var config = loop.Config{Batch: 1000, Interval: 30 * time.Second, MinInterval: time.Second, Settle: 30 * time.Second}

// script is work whose polls, reaps and writes are laid down beforehand. The last
// of each is repeated; without any, a reap and a write go well.
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

// entry is one thing that the loop did, and when, since it began.
type entry struct {
	at   time.Duration
	what string
}

func (s *script) note(what string) { s.log = append(s.log, entry{time.Since(start()), what}) }

// start is when the clock of a test's bubble begins.
func start() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// next takes the next of a list, whose last is repeated.
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

func idle() loop.PollResult { return loop.PollResult{Server: boot, Uptime: time.Hour} }

func stale() loop.PollResult {
	result := idle()
	result.Stale = true
	return result
}

// answer is the result of a poll of another server, on which something is stale.
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

// within requires that something was done between two times.
func within(t *testing.T, e entry, what string, from, to time.Duration) {
	t.Helper()
	require.Equal(t, what, e.what)
	require.GreaterOrEqual(t, e.at, from, what)
	require.LessOrEqual(t, e.at, to, what)
}

// whats is what was done, one kind of poll like the other.
func whats(log []entry) []string {
	list := make([]string, len(log))
	for i, e := range log {
		list[i] = strings.TrimSuffix(e.what, " all")
	}
	return list
}

// count is how often something was done.
func count(log []string, what string) (n int) {
	for _, did := range log {
		if did == what {
			n++
		}
	}
	return n
}
