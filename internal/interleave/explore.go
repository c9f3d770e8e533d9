package interleave

import (
	"math/rand/v2"
	"slices"
)

// Play plays one schedule and checks what came of it.
type Play func(cuts int, choose Choose) (*Record, error)

// Every plays all schedules in which so many connections are lost at most, depth first,
// and returns how many it has played. It stops behind most of them, and at the first
// error.
func Every(play Play, cuts, most int) (n int, whole bool, err error) {
	var begin Schedule
	for n < most {
		record, err := play(cuts, begin.Follow)
		if err != nil {
			return n, false, err
		}
		n++
		if begin = record.next(); begin == nil {
			return n, true, nil
		}
	}
	return n, false, nil
}

// next is the beginning of the schedule after this one, or nil.
func (r *Record) next() Schedule {
	for i := len(r.Schedule) - 1; i >= 0; i-- {
		at := slices.Index(r.Possible[i], r.Schedule[i])
		if rest := r.Possible[i][at+1:]; len(rest) > 0 {
			return append(slices.Clone(r.Schedule[:i]), rest[0])
		}
	}
	return nil
}

// Sample plays n schedules that are drawn from a seed. With cuts, a connection is lost at
// an exchange that is drawn too.
func Sample(play Play, cuts, n int, seed uint64) error {
	length := 1 // of the longest schedule so far
	for i := range n {
		draw := rand.New(rand.NewPCG(seed, uint64(i))) //nolint:gosec // schedules, no secrets; i is not negative
		at := draw.IntN(length)
		record, err := play(cuts, func(played Schedule, possible []Action) (Action, error) {
			keep := slices.DeleteFunc(slices.Clone(possible), func(a Action) bool {
				return (a.Loss == LoseNothing) == (cuts > 0 && len(played) == at)
			})
			if len(keep) == 0 {
				keep = possible
			}
			return keep[draw.IntN(len(keep))], nil
		})
		if err != nil {
			return err
		}
		length = max(length, len(record.Schedule))
	}
	return nil
}
