package main

import (
	"slices"
	"time"
)

// history keeps what was reaped. The tables forget a reset when its job is
// finished, so what was seen once is kept: of each ten seconds the most that any
// look has counted.
type history struct {
	began  time.Time // the first look, by the database's clock
	slices map[int64]slice
	last   []reapedJob // newest first
}

// recent is how far back a look goes that is not the first. It is long enough for
// a job that was reset to be seen before it is finished, and for a database that
// was away for a while.
const recent = 2 * time.Minute

// keptReaped is how many single jobs are kept.
const keptReaped = 50

func newHistory(seen *sight) *history {
	h := &history{began: seen.Gates.EvaluatedAt, slices: map[int64]slice{}}
	h.add(seen)
	return h
}

// since is how far back the next look must go, to miss nothing since a look that
// saw.
func since(seen *sight, away time.Duration) time.Duration {
	if seen == nil {
		return wholeHistory
	}
	return min(recent+away, wholeHistory)
}

func (h *history) add(seen *sight) {
	for _, s := range seen.Reaped {
		key := s.Start.Unix()
		old := h.slices[key]
		h.slices[key] = slice{Start: s.Start, Resets: max(s.Resets, old.Resets), Moves: max(s.Moves, old.Moves)}
	}
	for key := range h.slices {
		if key < seen.Gates.EvaluatedAt.Add(-wholeHistory-time.Minute).Unix() {
			delete(h.slices, key)
		}
	}
	h.addLast(seen.Last)
}

// addLast keeps the newest. A job that was reaped again has other attempts.
func (h *history) addLast(last []reapedJob) {
	for _, s := range last {
		known := func(old reapedJob) bool {
			return old.JobID == s.JobID && old.What == s.What && old.Attempts == s.Attempts
		}
		if !slices.ContainsFunc(h.last, known) {
			h.last = append(h.last, s)
		}
	}
	slices.SortStableFunc(h.last, func(a, b reapedJob) int { return b.At.Compare(a.At) })
	h.last = h.last[:min(len(h.last), keptReaped)]
}

// minutes adds up the slices of the last minutes, oldest first; the last one is
// under way.
func (h *history) minutes(now time.Time, n int) []int {
	counts := make([]int, n)
	for _, s := range h.slices {
		ago := int(now.Unix()/60 - s.Start.Unix()/60)
		if ago >= 0 && ago < n {
			counts[n-1-ago] += s.Resets + s.Moves
		}
	}
	return counts
}

// sparkline draws counts as bars. A count above none shows, however small.
func sparkline(counts []int) string {
	bars := []rune("▁▂▃▄▅▆▇█")
	most := slices.Max(counts)
	line := make([]rune, len(counts))
	for i, n := range counts {
		line[i] = '·'
		if n > 0 {
			line[i] = bars[(n*len(bars)-1)/most]
		}
	}
	return string(line)
}
