package loop

import "time"

// fullPollEvery is how long a loop polls only after its cursor before the next full poll.
// A shorter interval shortens it, and a slow full poll lengthens it.
const fullPollEvery = 30 * time.Second

// fullPollFactor times the duration of a full poll is the least time from its beginning to
// the beginning of the next.
const fullPollFactor = 10

// scan decides which polls are full. A full poll begins at the oldest lease and reads the
// index entries of all jobs that were reaped since the last vacuum. So full polls are
// limited to a tenth of the time, however short the interval is.
type scan struct {
	done     bool      // the jobs that the last full poll found were reaped
	next     time.Time // when the next full poll is, once done
	earliest time.Time // when a full poll is allowed, until done
}

// full reports whether the poll that begins now is full.
func (s *scan) full(now time.Time) bool { return !s.done || !now.Before(s.next) }

// begun records when a full poll began and how long it took.
func (s *scan) begun(at time.Time, took, interval time.Duration) {
	s.done = false
	s.earliest = at.Add(fullPollFactor * took)
	s.next = at.Add(max(min(fullPollEvery, interval), fullPollFactor*took))
}

// untilAllowed returns how long the next step must wait, if its poll is full.
func (s *scan) untilAllowed(now time.Time) time.Duration {
	if s.done {
		return 0
	}
	return s.earliest.Sub(now)
}
