package stmt_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// plan is a node of the plan of a statement that was run, and those below it.
type plan struct {
	Node     string  `json:"Node Type"`
	Relation string  `json:"Relation Name"`
	Index    string  `json:"Index Name"`
	Rows     float64 `json:"Actual Rows"` // of one loop
	Loops    float64 `json:"Actual Loops"`
	Filtered float64 `json:"Rows Removed by Filter"`
	Rejoined float64 `json:"Rows Removed by Index Recheck"`
	Hit      int     `json:"Shared Hit Blocks"` // with the nodes below
	Read     int     `json:"Shared Read Blocks"`
	Plans    []plan  `json:"Plans"`
}

// explain runs a statement as the server runs one that was prepared, so that
// plan_cache_mode counts, and returns its plan. What it writes is for the
// caller's transaction to undo.
func explain(t *testing.T, db reapertest.Execer, s reapertest.Sent) plan {
	t.Helper()
	reapertest.Exec(t, db, `prepare explained as `+s.SQL)
	defer reapertest.Exec(t, db, `deallocate explained`)
	places := make([]string, len(s.Args))
	for i := range s.Args {
		places[i] = fmt.Sprintf("$%d", i+1)
	}
	sql := `explain (analyze, buffers, timing off, summary off, format json) execute explained`
	if len(places) > 0 {
		sql += "(" + strings.Join(places, ", ") + ")"
	}
	args := slices.Concat([]any{pgx.QueryExecModeSimpleProtocol}, s.Args) // EXECUTE takes no parameters
	var explained []struct{ Plan plan }
	require.NoError(t, json.Unmarshal([]byte(reapertest.One[string](t, db, sql, args...)), &explained), s.SQL)
	return explained[0].Plan
}

// all are the plan's nodes.
func (p plan) all() []plan {
	nodes := []plan{p}
	for _, below := range p.Plans {
		nodes = append(nodes, below.all()...)
	}
	return nodes
}

// scans are the nodes that read a table.
func (p plan) scans(table string) []plan {
	return slices.DeleteFunc(p.all(), func(n plan) bool {
		return n.Relation != table || !strings.HasSuffix(n.Node, "Scan")
	})
}

// of are the nodes of one kind.
func (p plan) of(node string) []plan {
	return slices.DeleteFunc(p.all(), func(n plan) bool { return n.Node != node })
}

// rows is how many rows a node has looked at.
func (p plan) rows() int { return int((p.Rows + p.Filtered + p.Rejoined) * p.Loops) }

// pages is how often the statement has asked for a page of a table or an index.
func (p plan) pages() int { return p.Hit + p.Read }

func (p plan) String() string {
	text, _ := json.MarshalIndent(p, "", "  ") // it was JSON before
	return string(text)
}
