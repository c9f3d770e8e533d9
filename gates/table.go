package gates

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

var _ Source = Table{}

// Table reads settings from a table with the columns key and value. The column
// value may be text, boolean or jsonb; NULL, and jsonb's null, mean unset.
//
// It locks the rows it reads FOR SHARE, so a transaction that changes a gate
// waits for the applies that are under way, and they for it. For that the role
// needs SELECT on the table and UPDATE on any one column of it.
//
// FOR SHARE cannot lock a row that does not exist yet, and one row may close an
// apply's way when it is inserted: a window's end. [Table.Set] and
// [Table.OpenWindow] wait for applies all the same. SQL of your own should begin
// with the lock that they take, LOCK TABLE in EXCLUSIVE mode.
//
// The table may be a view. Of a view FOR SHARE locks the rows of those tables alone
// that stand in the FROM of its query, joined ones included. What a subquery in an
// expression, a CTE or a function reads is not locked, and a change there waits for no
// apply. Of a foreign table the other server decides what is locked, and for how long
// an apply waits for it.
type Table struct {
	// Name is the table's name, with its schema or on the search path.
	// Empty: queue_config.
	Name pgx.Identifier
}

// Read reads what is set of keys. A key with two rows is a [*ValueError] with the
// first one's value.
func (t Table) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return t.read(ctx, tx, keys, true)
}

// ReadUnlocked reads like Read, and locks nothing. So it needs SELECT alone and works
// in a read-only transaction, but what it reads is no fence.
func (t Table) ReadUnlocked(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return t.read(ctx, tx, keys, false)
}

func (t Table) read(ctx context.Context, tx pgx.Tx, keys []string, lock bool) (Values, error) {
	table, err := gatesql.NewTable(t.Name)
	if err != nil {
		return nil, err
	}
	answer, err := read(ctx, tx, table, keys, lock)
	if err != nil {
		return nil, err
	}
	if len(answer.Unclear) > 0 {
		key := answer.Unclear[0].Key
		return nil, &ValueError{key, answer.Values[key], "is one of several rows for this key"}
	}
	return answer.Values, nil
}

// Validate reports a name that no table can have.
func (t Table) Validate() error {
	_, err := gatesql.NewTable(t.Name)
	return err
}
