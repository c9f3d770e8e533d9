package gates

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Pipeliner is a [Source] whose reading is one statement, so that it can travel
// with others in one exchange. The reaper makes use of it with this package's own
// sources alone: by embedding, another type would have the Queue of the one in it,
// and not its own Read. Queue adds the statement to b; the function it
// returns gives the values once b was sent and answered. With fence it locks
// what it reads, if the source is a fence at all; without, it locks nothing, and
// what it reads may only close a gate.
type Pipeliner interface {
	Source
	Queue(b *pgx.Batch, keys []string, fence bool) func() (Values, error)
}

var (
	_ Pipeliner = Table{}
	_ Pipeliner = CurrentSetting{}
)

// send reads settings in an exchange of its own.
func send(ctx context.Context, tx pgx.Tx, p Pipeliner, keys []string, fence bool) (Values, error) {
	b := &pgx.Batch{}
	values := p.Queue(b, keys, fence)
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return nil, fmt.Errorf("gates: read settings: %w", err)
		}
	}
	return values()
}
