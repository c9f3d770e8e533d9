package deadletter

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// Pipeliner is a [Mover] whose work is statements alone, so that it can travel
// with the reaper's own in one exchange. The reaper makes use of it with this
// package's own movers alone: by embedding, another type would have the Queue of
// the one in it, and not its own Move. Queue adds the statements to b; the
// function it returns gives the receipts once b was sent and answered.
type Pipeliner interface {
	Mover
	Queue(b *pgx.Batch, batch Batch) func() ([]Receipt, error)
}

var _ Pipeliner = Function{}

// send moves a batch in an exchange of its own.
func send(ctx context.Context, tx pgx.Tx, p Pipeliner, batch Batch) ([]Receipt, error) {
	b := &pgx.Batch{}
	receipts := p.Queue(b, batch)
	if b.Len() > 0 {
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return nil, err
		}
	}
	return receipts()
}
