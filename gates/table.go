package gates

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

var _ Source = Table{}

// Table is a [Source] that reads a table with the columns key and value. The column
// value may be text, boolean or jsonb. NULL, and jsonb's null, mean unset.
//
// It locks the rows that it reads FOR SHARE. So a transaction that changes a gate waits
// for the applies in progress, and applies wait for that transaction. The role needs
// SELECT on the table and UPDATE on at least one of its columns.
//
// FOR SHARE cannot lock a row that does not exist yet, and a new row can refuse applies:
// a window's end. [Table.Set] and [Table.OpenWindow] wait for applies in this case too.
// SQL of your own should first take the lock that they take, LOCK TABLE in EXCLUSIVE
// mode.
//
// The table may be a view. Then FOR SHARE locks the rows of the tables in the FROM of the
// view's query, joined ones included. It does not lock what a subquery in an expression, a
// CTE or a function reads: a change there waits for no apply. For a foreign table, the
// other server decides what is locked, and how long an apply waits for it.
type Table struct {
	// Name is the table's name, with its schema or on the search path.
	// Empty: queue_config.
	Name pgx.Identifier
}

// Read returns the values of those keys that are set. A key with two rows is a
// [*ValueError] with the value of the first row.
func (t Table) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return t.read(ctx, tx, keys, true)
}

// ReadUnlocked is Read without locks. It needs only SELECT and works in a read-only
// transaction, but it is no fence.
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
