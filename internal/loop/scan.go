package loop

import "time"

// fullPollEvery is how long a loop goes on polling only behind its cursor before it
// polls everything again, unless the interval is shorter or that takes long.
const fullPollEvery = 30 * time.Second

// fullPollFactor is how many times as long as a full poll took passes from its beginning
// to that of the next one, at least.
const fullPollFactor = 10

// scan decides which polls are of everything. A full poll begins at the oldest
// lease, and walks the index entries of all jobs that were reaped since the last
// vacuum, so however short the interval is, it may cost a tenth of the time.
type scan struct {
	done     bool      // the last full poll was followed up: what it found was reaped
	next     time.Time // when everything is polled again
	earliest time.Time // when it may be, while it is not done
}

// full reports whether to poll everything now.
func (s *scan) full(now time.Time) bool { return !s.done || !now.Before(s.next) }

// begun keeps when a full poll began, and what it cost.
func (s *scan) begun(at time.Time, took, interval time.Duration) {
	s.done = false
	s.earliest = at.Add(fullPollFactor * took)
	s.next = at.Add(max(min(fullPollEvery, interval), fullPollFactor*took))
}

// rest returns how long to wait until the poll that the next step makes is cheap
// enough.
func (s *scan) rest(now time.Time) time.Duration {
	if s.done {
		return 0
	}
	return s.earliest.Sub(now)
}
