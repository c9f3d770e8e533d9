package gates

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
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
type Table struct {
	// Name is the table's name, with its schema or on the search path.
	// Empty: queue_config.
	Name pgx.Identifier
}

// sqlPeek reads the settings. The detour over jsonb gives the bare text of a text, a
// boolean and a jsonb value alike. Served by the primary key on key.
//
//	$1 keys  text[]
const sqlPeek = `-- gates.read
select c.key, to_jsonb(c.value) #>> '{}' as value
from {table} c
where c.key = any($1::text[])
order by c.key`

// sqlRead is sqlPeek that also locks the rows FOR SHARE.
const sqlRead = sqlPeek + `
for share of c`

// Peek reads like Read, and locks nothing. So it needs SELECT alone and works in
// a read-only transaction, but what it reads is no fence.
func (t Table) Peek(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return send(ctx, tx, t, keys, false)
}

// Read reads what is set of keys. A key with two rows is a [*ValueError] with the
// first one's value.
func (t Table) Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error) {
	return send(ctx, tx, t, keys, true)
}

// Queue queues the statement of Read, or of Peek when there is to be no fence.
func (t Table) Queue(b *pgx.Batch, keys []string, fence bool) func() (Values, error) {
	name, err := t.quoted()
	if err != nil {
		return func() (Values, error) { return nil, err }
	}
	sql := sqlPeek
	if fence {
		sql = sqlRead
	}
	var rows []setting
	b.Queue(strings.Replace(sql, "{table}", name, 1), keys).Query(func(found pgx.Rows) error {
		var row setting
		_, err := pgx.ForEachRow(found, []any{&row.Key, &row.Value}, func() error {
			rows = append(rows, row)
			return nil
		})
		return err
	})
	return func() (Values, error) { return valuesOf(rows) }
}

// setting is a row of sqlRead.
type setting struct {
	Key   string
	Value *string
}

// valuesOf takes rows in the order of their keys.
func valuesOf(rows []setting) (Values, error) {
	values := make(Values, len(rows))
	for i, row := range rows {
		if i > 0 && row.Key == rows[i-1].Key {
			return nil, &ValueError{row.Key, values[row.Key], "is one of several rows for this key"}
		}
		if row.Value != nil {
			values[row.Key] = *row.Value
		}
	}
	return values, nil
}

// Validate reports a name that no table can have.
func (t Table) Validate() error {
	_, err := t.quoted()
	return err
}

func (t Table) quoted() (string, error) {
	if len(t.Name) == 0 {
		return "queue_config", nil
	}
	name, err := pgtext.Name(t.Name)
	if err != nil {
		return "", fmt.Errorf("gates: settings table: %w", err)
	}
	return name, nil
}
