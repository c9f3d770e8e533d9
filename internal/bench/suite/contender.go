package suite

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// actor reaps in every benchmark.
const actor = "bench"

// Contender is one way to reap.
type Contender struct {
	Name string
	// Reap reaps one batch. What it returns counts what was done, off the clock.
	Reap func(ctx context.Context, limit int) (Count, error)
}

// Count tells what a batch did.
type Count func() (Tally, error)

// Tally is what a batch did.
type Tally struct {
	Resets int `json:"reset_count"`
	Moves  int `json:"dead_letter_count"`
}

// Jobs is how many there were.
func (t Tally) Jobs() int { return t.Resets + t.Moves }

// Names of the contenders.
const (
	library   = "library"
	reference = "oracle"
	statement = "single statement"
)

// Make makes a contender that uses a pool.
type Make func(*pgxpool.Pool) (Contender, error)

// all are the contenders of an apply.
func all() []Make { return []Make{Library, Oracle, Single} }

// connect makes contenders, each on a connection of its own.
func connect(ctx context.Context, q *bed.Queue, makes ...Make) ([]Contender, error) {
	list := make([]Contender, len(makes))
	for i, entrant := range makes {
		pool, err := q.Connect(ctx)
		if err != nil {
			return nil, err
		}
		if list[i], err = entrant(pool); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// names returns the names of contenders.
func names(list []Contender) []string {
	names := make([]string, len(list))
	for i, contender := range list {
		names[i] = contender.Name
	}
	return names
}
