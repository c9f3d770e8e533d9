package verify

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// key checks whether something makes a job's id unique.
func (v *verifier) key(t *catalog.Table) {
	id := v.target.Queue.JobID
	if t.Column(id) == nil || t.HasKey(id) || !t.Stored() {
		return
	}
	v.error("key_missing", at(t, id), uniqueIndex(t, id),
		"Nothing makes the id unique: jobs with the same id are reaped as one, and finding one reads the whole table.")
}

// uniqueIndex is the statement that makes a column unique, within its partition at least.
func uniqueIndex(t *catalog.Table, column string) string {
	columns := []string{quote(column)}
	for _, other := range t.Partition {
		if other != column {
			columns = append(columns, quote(other))
		}
	}
	return fmt.Sprintf("create unique index%s on %s (%s)", concurrently(t), t.SQL, strings.Join(columns, ", "))
}

// sqlExplainAll reads all jobs. Its plan shows the partitions.
const sqlExplainAll = `-- verify.all
explain (format json, verbose)
select
from {queue} q`

// keyIndex checks whether an index finds a job by its id. A key of partitions, whose
// rows are found so, may begin with another column.
func (v *verifier) keyIndex(ctx context.Context, t *catalog.Table) error {
	id := v.target.Queue.JobID
	byID := func(key catalog.Key) bool { return key.Columns[0] == id }
	if !t.HasKey(id) || slices.ContainsFunc(t.Keys, byID) {
		return nil
	}
	plan, err := v.explain(ctx, sqlExplainAll)
	if err != nil {
		return err
	}
	for _, read := range plan.reads {
		finds := func(i catalog.Index) bool {
			return relation{i.Schema, i.Relation} == read && i.Columns[0] == id && i.Predicate == ""
		}
		if !slices.ContainsFunc(t.Indexes, finds) {
			v.warn("index_missing", at(t, id), fmt.Sprintf("create index on %s (%s)", t.SQL, quote(id)),
				"No index begins with the id, so each batch of resets and moves reads the whole queue.")
			break
		}
	}
	return nil
}
