package deadletter_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/deadletter"
)

// A mover that announces dead jobs in an outbox, in the same transaction as the
// table that keeps them.
func ExampleMoverFunc() {
	mover := deadletter.MoverFunc(
		func(ctx context.Context, tx pgx.Tx, batch deadletter.Batch) ([]deadletter.Receipt, error) {
			receipts, err := deadletter.Table{}.Move(ctx, tx, batch)
			if err != nil {
				return nil, err
			}
			message, err := json.Marshal(batch.IDs())
			if err != nil {
				return nil, err
			}
			_, err = tx.Exec(ctx, `insert into outbox (topic, message) values ('jobs.dead', $1)`, message)
			return receipts, err
		})
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}

func ExampleTable() {
	mover := deadletter.Table{Name: pgx.Identifier{"ops", "dead_jobs"}}
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}

func ExampleFunction() {
	mover := deadletter.Function{Name: pgx.Identifier{"ops", "bury_job"}}
	fmt.Println(mover.Validate())
	// Output:
	// <nil>
}
