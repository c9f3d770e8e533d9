package gates

import (
	"context"

	"github.com/jackc/pgx/v5"
)

var _ Source = Replica{}

// Replica is [Table] over a copy of a settings table that something else keeps, such as the
// part of a Citus reference table on one node. A change belongs into the original: Replica
// has no methods that change settings, and [Table.Set] with the copy's name would make the
// copies differ.
//
// It locks the rows of the copy as Table does. It is a fence if what copies a change waits
// for these locks before the change is committed.
type Replica struct {
	// Name is the copy's name, with its schema or on the search path.
	// Empty: queue_config.
	Name pgx.Identifier
}

// Read returns the values of those keys that are set, as [Table.Read] does.
func (r Replica) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return Table(r).Read(ctx, tx, keys)
}

// Validate reports a name that no table can have.
func (r Replica) Validate() error { return Table(r).Validate() }
