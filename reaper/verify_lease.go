package reaper

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/catalog"
)

// sqlServes is the order in which a claim reads. Its plan shows whether an index
// serves it.
const sqlServes = `-- verify.index
explain (format json)
select q.{job_id}
from {queue} q
where ` + stale + `
order by q.{lease_until}
limit 1`

// index asks the planner which index serves the claim when it may not scan.
func (v *verifier) index(ctx context.Context, t *catalog.Table) error {
	if _, err := v.tx.Exec(ctx, "set local enable_seqscan = off"); err != nil {
		return err
	}
	var plan []byte
	if err := v.tx.QueryRow(ctx, v.sql.serves, v.scope).Scan(&plan); err != nil {
		return err
	}
	var nodes any
	if err := json.Unmarshal(plan, &nodes); err != nil {
		return err
	}
	name := v.cfg.Queue.Columns.LeaseUntil
	if scans(nodes, name) {
		return nil
	}
	quoted := pgx.Identifier{name}.Sanitize()
	v.add(Problem{
		Code: CodeIndexMissing, Severity: SeverityWarning, Object: v.queue.Table + "." + quoted,
		Message: "No index serves the claim, so every pass reads the whole queue.",
		Fix: fmt.Sprintf("create index%s on %s (%s) where %s",
			concurrently(t), v.queue.Table, quoted, v.sql.leased),
	})
	return nil
}

// scans reports whether every scan in a plan is of an index, by the lease's end.
func scans(node any, leaseUntil string) bool {
	switch node := node.(type) {
	case []any:
		return !slices.ContainsFunc(node, func(n any) bool { return !scans(n, leaseUntil) })
	case map[string]any:
		if kind, _ := node["Node Type"].(string); strings.HasSuffix(kind, "Scan") {
			condition, _ := node["Index Cond"].(string)
			bitmap := kind == "Bitmap Heap Scan" // its condition is its child's
			if !bitmap && !strings.Contains(condition, leaseUntil) {
				return false
			}
		}
		for _, key := range []string{"Plan", "Plans"} {
			if child, ok := node[key]; ok && !scans(child, leaseUntil) {
				return false
			}
		}
	}
	return true
}

// sqlLost counts leased jobs that no reaper will pick up, or not for a week.
// Served by job_queue_lease_until_idx.
const sqlLost = `-- verify.rows
select count(*) filter (where q.{lease_until} is null),
  count(*) filter (where q.{lease_until} = 'infinity'),
  count(*) filter (where q.{lease_until} < 'infinity')
from {queue} q
where q.{state} = {leased}
  and (q.{lease_until} is null or q.{lease_until} > now() + interval '1 week')`

// lost is a kind of lease that will not end, or not soon.
type lost struct {
	code, message string
	condition     string // over the lease's end
	n             int
}

// rows looks for leases that will not end.
func (v *verifier) rows(ctx context.Context) error {
	kinds := []*lost{
		{code: CodeLeaseEndless, message: "have a lease without an end, never stale", condition: "%s is null"},
		{code: CodeLeaseInfinite, message: "have a lease until infinity, never stale", condition: "%s = 'infinity'"},
		{
			code: CodeLeaseFar, message: "have a lease that ends more than a week from now, as if a clock were wrong",
			condition: "%[1]s > now() + interval '1 week' and %[1]s < 'infinity'",
		},
	}
	if err := v.tx.QueryRow(ctx, v.sql.lost).Scan(&kinds[0].n, &kinds[1].n, &kinds[2].n); err != nil {
		return err
	}
	until := pgx.Identifier{v.cfg.Queue.Columns.LeaseUntil}.Sanitize()
	for _, kind := range kinds {
		if kind.n == 0 {
			continue
		}
		v.add(Problem{
			Code: kind.code, Severity: SeverityWarning, Object: v.queue.Table,
			Message: fmt.Sprintf("%d leased jobs %s. The fix gives their workers an hour.", kind.n, kind.message),
			Fix: fmt.Sprintf("update %s set %s = now() + interval '1 hour' where %s and %s",
				v.queue.Table, until, v.sql.leased, fmt.Sprintf(kind.condition, until)),
		})
	}
	return nil
}
