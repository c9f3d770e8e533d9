package suite

import (
	"context"
	"fmt"
	"time"
)

// Samples are the seconds that each contender's turns took, in the order of the
// rounds.
type Samples map[string][]float64

func (s Samples) add(more Samples) {
	for name, seconds := range more {
		s[name] = append(s[name], seconds...)
	}
}

// Race says how contenders take turns.
type Race struct {
	Warmups int // rounds that do not count: a new connection is slow at first
	Rounds  int
	Limit   int
	// Want is how many jobs a turn has to reap. Nil: as many as its limit.
	Want *int
	// Before is called before each turn, off the clock, unless it is nil.
	Before func(ctx context.Context, limit int) error
}

// run has contenders take turns on the same queue, in an order that rotates.
func (race Race) run(ctx context.Context, list []Contender) (Samples, error) {
	samples := Samples{}
	for round := range race.Warmups + race.Rounds {
		limit := race.Limit
		if round < race.Warmups {
			limit = min(limit, warmUp)
		}
		for turn := range list {
			contender := list[(round+turn)%len(list)]
			seconds, err := race.turn(ctx, contender, limit)
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", contender.Name, round, err)
			}
			if round >= race.Warmups {
				samples[contender.Name] = append(samples[contender.Name], seconds)
			}
		}
	}
	return samples, nil
}

// turn is one batch of one contender.
func (race Race) turn(ctx context.Context, contender Contender, limit int) (float64, error) {
	if race.Before != nil {
		if err := race.Before(ctx, limit); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	count, err := contender.Reap(ctx, limit)
	took := time.Since(began).Seconds()
	if err != nil {
		return 0, err
	}
	return took, race.check(count, limit)
}

// check fails a turn that did not do what it was timed for.
func (race Race) check(count Count, want int) error {
	done, err := count()
	if err != nil {
		return err
	}
	if race.Want != nil {
		want = *race.Want
	}
	if done.Jobs() != want {
		return fmt.Errorf("reaped %d jobs, not %d", done.Jobs(), want)
	}
	return nil
}
