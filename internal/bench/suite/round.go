package suite

import (
	"context"
	"fmt"
	"time"
)

// Sample holds a figure of one contender for each round, in their order.
type Sample []float64

// Race says how contenders take turns.
type Race struct {
	Warmups int // rounds that do not count: a new connection is slow at first
	Rounds  int
	Limit   int
	// Before is called before each turn, off the clock. Default nil.
	Before func(ctx context.Context) error
	// Want is how many jobs a turn has to settle.
	Want int
}

// run has the contenders take turns on the same queue, in an order that rotates,
// and returns for each the seconds that its turns took.
func (race Race) run(ctx context.Context, list []Contender) (map[string]Sample, error) {
	samples := map[string]Sample{}
	for round := range race.Warmups + race.Rounds {
		for turn := range list {
			contender := list[(round+turn)%len(list)]
			seconds, err := race.turn(ctx, contender)
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
func (race Race) turn(ctx context.Context, contender Contender) (float64, error) {
	if race.Before != nil {
		if err := race.Before(ctx); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	count, err := contender.Reap(ctx, race.Limit)
	took := time.Since(began).Seconds()
	if err != nil {
		return 0, err
	}
	return took, race.check(count)
}

// check fails a turn that did not do what it was timed for.
func (race Race) check(count Count) error {
	done, err := count()
	if err != nil {
		return err
	}
	if done.jobs() != race.Want {
		return fmt.Errorf("settled %d jobs, not %d", done.jobs(), race.Want)
	}
	return nil
}
