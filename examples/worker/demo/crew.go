package demo

import (
	"errors"
	"strings"
	"time"
)

// lease is how long the workers' leases last: long enough for a busy machine.
const lease = 2 * time.Second

// crew are the workers.
type crew struct {
	url   string
	args  []string
	seats []*seat
}

// seat is a place that one worker after the other takes.
type seat struct {
	name   string
	taken  int
	worker *worker   // nil while it is empty
	since  time.Time // it is
}

func newCrew(url string, reapAsJob bool) *crew {
	c := &crew{url: url, args: []string{
		"--listen", "127.0.0.1:0", "--stop-on-eof", "--audit", "--workers", "2", "--poll", "100ms",
		"--lease", lease.String(), "--backoff-base-sec", "1",
		"--interval", "1s", "--min-interval", "200ms", "--settle", "1s",
	}}
	if reapAsJob {
		c.args = append(c.args, "--reap-as-job", "--reap-every", "500ms", "--watchdog-grace", "1s")
	}
	for _, name := range []string{"worker-1", "worker-2", consoleSeat} {
		c.seats = append(c.seats, &seat{name: name})
	}
	return c
}

// consoleSeat is the seat of the worker that serves the console. It is not killed.
const consoleSeat = "worker-3"

func (s *seat) hasConsole() bool { return s.name == consoleSeat }

// start puts a worker on an empty seat, under a name of its own: worker-1,
// worker-1b, worker-1c, and so on.
func (c *crew) start(s *seat) (*worker, error) {
	name := s.name
	if s.taken > 0 {
		name += string(rune('a' + s.taken))
	}
	args := append([]string{"--name", name}, c.args...)
	if s.hasConsole() {
		args = append(args, "--console", "--console-actor", "demo")
	}
	worker, err := startWorker(name, c.url, args)
	if err != nil {
		return nil, err
	}
	s.worker, s.taken = worker, s.taken+1
	return worker, nil
}

// complete reports whether no seat is empty.
func (c *crew) complete() bool {
	for _, s := range c.seats {
		if s.worker == nil {
			return false
		}
	}
	return true
}

// stop asks all workers to end, and returns when they have.
func (c *crew) stop() error {
	var faults []error
	for _, s := range c.seats {
		faults = append(faults, s.worker.stop())
	}
	return errors.Join(faults...)
}

// killAll leaves no process behind.
func (c *crew) killAll() {
	for _, s := range c.seats {
		if s.worker != nil {
			s.kill()
		}
	}
}

// lastWords are the ends of the workers' logs.
func (c *crew) lastWords() string {
	var b strings.Builder
	for _, s := range c.seats {
		if s.worker != nil {
			b.WriteString(s.worker.lastWords())
		}
	}
	return b.String()
}

// kill kills as kill -9 does: the worker gives nothing back and says nothing.
func (s *seat) kill() {
	_ = s.worker.command.Process.Kill()
	<-s.worker.ended
	s.worker, s.since = nil, time.Now()
}
