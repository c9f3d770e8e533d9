package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

func (t *tool) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Create the reference tables",
		Long: `Create job_queue, job_dead_letter and queue_config with their indexes, in the
first schema of the search path. What is there already stays as it is. A queue
of your own needs --queue and the like instead.`,
		Args: cobra.NoArgs,
		RunE: t.changes(func(ctx context.Context, _ []string) error { return t.init(ctx) }),
	}
}

// initResult is the JSON of init.
type initResult struct {
	Created []string `json:"created"`
	Kept    []string `json:"kept"`
}

func (t *tool) init(ctx context.Context) error {
	if !t.queue.reference() {
		return misused("init creates the reference tables; --queue and the like are for tables of your own")
	}
	there, err := t.referenceTables(ctx)
	if err != nil {
		return err
	}
	result := initResult{Created: []string{}, Kept: there}
	for _, table := range referenceTables() {
		if !slices.Contains(there, table) {
			result.Created = append(result.Created, table)
		}
	}
	if err := t.confirmInit(ctx, result); err != nil {
		return err
	}
	if _, err := t.pool.Exec(ctx, reaper.Schema); err != nil { // one implicit transaction
		return err
	}
	return t.printInit(result)
}

func (t *tool) confirmInit(ctx context.Context, result initResult) error {
	if t.yes {
		return nil
	}
	var schema, database string
	err := t.pool.QueryRow(ctx, "select coalesce(current_schema(), ''), current_database()").Scan(&schema, &database)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.errs, "In schema %q of database %q: %d of 3 tables are there.\n", schema, database, len(result.Kept))
	return t.confirm(ctx, "Create what is missing, with its indexes?")
}

func (t *tool) printInit(result initResult) error {
	if t.json {
		return t.printJSON(result)
	}
	for _, table := range result.Created {
		fmt.Fprintln(t.out, "created", table)
	}
	for _, table := range result.Kept {
		fmt.Fprintln(t.out, "there already:", table)
	}
	return nil
}

func referenceTables() []string { return []string{"job_queue", "job_dead_letter", "queue_config"} }

// sqlThere finds those of some tables that the search path leads to.
//
//	$1 tables  text[]
const sqlThere = `-- leasereaper.there
select name from unnest($1::text[]) as name where to_regclass(name) is not null`

func (t *tool) referenceTables(ctx context.Context) ([]string, error) {
	there, err := collect[string](ctx, t.pool, sqlThere, referenceTables())
	if there == nil {
		there = []string{}
	}
	return there, err
}

// inReadOnly gives an action a transaction that cannot write.
func (t *tool) inReadOnly(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, t.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}
