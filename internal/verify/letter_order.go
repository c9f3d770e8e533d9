package verify

import (
	"context"
	"slices"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// manyLetters is how many letters it takes for the index on their order to matter.
const manyLetters = 10_000

// sqlLetterCount is how many rows a table has, as of its last analyze.
//
//	$1 table  oid
const sqlLetterCount = `-- verify.letter_count
select reltuples::bigint
from pg_class
where oid = $1::oid`

// letterOrder checks for an index with the order of the letters, where there are many.
func (v *verifier) letterOrder(ctx context.Context, t *catalog.Table) error {
	ordered := slices.ContainsFunc(t.Indexes, func(i catalog.Index) bool {
		return i.Columns[0] == "moved_at" && i.Predicate == ""
	})
	if ordered || t.Kind != "r" {
		return nil
	}
	var count int64
	if err := v.tx.QueryRow(ctx, sqlLetterCount, t.OID).Scan(&count); err != nil || count < manyLetters {
		return err
	}
	v.warn("index_missing", at(t, "moved_at"),
		"create index"+concurrently(t)+" on "+t.SQL+` ("moved_at", "dead_letter_id")`,
		"No index has the order of the letters: List, Redrive and Purge sort all of them, about %d.", count)
	return nil
}
