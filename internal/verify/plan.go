package verify

import (
	"context"
	"encoding/json"
	"slices"
)

// plan is what a query plan tells of how a query gets its rows.
type plan struct {
	sorts bool
	reads []relation
}

// relation is a table that a plan reads.
type relation struct{ schema, name string }

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
	var roots []struct{ Plan node }
	var text []byte
	if err := v.tx.QueryRow(ctx, v.names.Replace(sql), args...).Scan(&text); err != nil {
		return nil, err
	}
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
	if n.Parent == "SubPlan" || n.Parent == "InitPlan" {
		return
	}
	p.sorts = p.sorts || n.Type == "Sort" || n.Type == "Incremental Sort"
	if read := (relation{n.Schema, n.Relation}); n.Relation != "" && !slices.Contains(p.reads, read) {
		p.reads = append(p.reads, read)
	}
	for _, child := range n.Plans {
		p.add(child)
	}
}
