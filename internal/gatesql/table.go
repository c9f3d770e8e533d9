package gatesql

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/pgtext"
)

// Table reads a table with the columns key and value.
type Table struct{ Name string } // quoted

// DefaultTable is the name of the settings table unless it is configured.
const DefaultTable = "queue_config"

// NewTable quotes the name of a table. An empty name means DefaultTable.
func NewTable(id pgx.Identifier) (Table, error) {
	if len(id) == 0 {
		return Table{DefaultTable}, nil
	}
	name, err := pgtext.Name(id)
	if err != nil {
		return Table{}, fmt.Errorf("gates: settings table: %w", err)
	}
	return Table{name}, nil
}

// sqlRead reads the settings. The conversion to jsonb gives the plain text of a text, a
// boolean or a jsonb value. Served by the primary key on key.
//
//	$1 keys  text[]
const sqlRead = `-- gates.read
select c.key, to_jsonb(c.value) #>> '{}' as value
from {table} c
where c.key = any($1::text[])
order by c.key`

// sqlReadLocked is sqlRead that also locks the rows FOR SHARE.
const sqlReadLocked = sqlRead + `
for share of c`

// Queue queues the statement. A key with two rows is unclear.
func (t Table) Queue(b *pgx.Batch, keys []string, lock bool) *Answer {
	sql := sqlRead
	if lock {
		sql = sqlReadLocked
	}
	answer := &Answer{Values: map[string]string{}}
	b.Queue(strings.Replace(sql, "{table}", t.Name, 1), keys).Query(func(rows pgx.Rows) error {
		var key string
		var value *string
		var before *Unclear // the key of the previous row, with the value of its first row
		_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
			if before != nil && key == before.Key {
				answer.Unclear = append(answer.Unclear, Unclear{key, before.First, value})
				return nil
			}
			before = &Unclear{Key: key, First: value}
			answer.add(key, value)
			return nil
		})
		answer.Read = err == nil
		return err
	})
	return answer
}
