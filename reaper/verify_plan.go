package reaper

import (
	"context"
	"encoding/json"
	"slices"
)

// plan is what a query plan tells of how a query gets its rows.
type plan struct {
	sorts bool
	reads []pgTable
}

// pgTable is a table that a plan reads.
type pgTable struct{ schema, name string }

// node is a node of a plan, as EXPLAIN prints it.
type node struct {
	Type     string `json:"Node Type"`
	Parent   string `json:"Parent Relationship"`
	Schema   string `json:"Schema"`
	Relation string `json:"Relation Name"`
	Plans    []node `json:"Plans"`
}

// explain reads the plan of a query from its EXPLAIN.
func (v *verifier) explain(ctx context.Context, sql string, args ...any) (*plan, error) {
	var text []byte
	if err := v.tx.QueryRow(ctx, sql, args...).Scan(&text); err != nil {
		return nil, err
	}
	var roots []struct{ Plan node }
	if err := json.Unmarshal(text, &roots); err != nil {
		return nil, err
	}
	var p plan
	for _, root := range roots {
		p.add(root.Plan)
	}
	return &p, nil
}

// add adds a node and those below it, without the subqueries of policies.
func (p *plan) add(n node) {
	switch n.Parent {
	case "SubPlan", "InitPlan":
		return
	}
	switch n.Type {
	case "Sort", "Incremental Sort":
		p.sorts = true
	}
	if table := (pgTable{n.Schema, n.Relation}); n.Relation != "" && !slices.Contains(p.reads, table) {
		p.reads = append(p.reads, table)
	}
	for _, child := range n.Plans {
		p.add(child)
	}
}
