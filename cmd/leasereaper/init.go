package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"
)

func (t *tool) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init",
		Short: "Create the tables, as the mapping calls them",
		Long: `Create the queue, the dead letters and the settings with their indexes, in one
transaction, under the names of the mapping: job_queue, job_dead_letter and
queue_config unless it has others. It shows the SQL first. A table that is there
stays as it is.`,
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
	if why := t.queue.foreign(); why != "" {
		return misused("init cannot make this queue: %s", why)
	}
	if err := t.queue.check(); err != nil {
		return &usageError{err.Error()}
	}
	missing, _, err := missingTables(ctx, t.pool, t.queue.tables())
	if err != nil {
		return err
	}
	result := initResult{Created: []string{}, Kept: []string{}}
	var ddl []string
	for i, table := range t.queue.tables() {
		name := strings.Join(table, ".")
		if !slices.Contains(missing, name) {
			result.Kept = append(result.Kept, name)
			continue
		}
		result.Created = append(result.Created, name)
		schema, err := t.schemaDDL(ctx, table, ddl)
		if err != nil {
			return err
		}
		ddl = append(append(ddl, schema...), t.queue.ddl(i)...)
	}
	if err := t.create(ctx, ddl, result); err != nil {
		return err
	}
	return t.printInit(result)
}

// schemaDDL creates the schema of a table, if it is missing and no statement creates it.
func (t *tool) schemaDDL(ctx context.Context, table pgx.Identifier, ddl []string) ([]string, error) {
	if len(table) < 2 {
		return nil, nil
	}
	there, err := collect[bool](ctx, t.pool, "select exists (select from pg_namespace where nspname = $1)", table[0])
	create := "create schema " + table[:1].Sanitize()
	if err != nil || there[0] || slices.Contains(ddl, create) {
		return nil, err
	}
	return []string{create}, nil
}

// create shows the statements, asks, and executes them together.
func (t *tool) create(ctx context.Context, ddl []string, result initResult) error {
	if len(ddl) == 0 {
		return nil
	}
	if !t.yes {
		database, err := collect[string](ctx, t.pool,
			"select current_database() || ', schema ' || coalesce(current_schema(), '')")
		if err != nil {
			return err
		}
		fmt.Fprintf(t.errs, "%s;\n\nDatabase %s: %d of %d tables are there.\n",
			strings.Join(ddl, ";\n\n"), database[0], len(result.Kept), len(result.Kept)+len(result.Created))
		if err := t.confirm(ctx, "Create what is missing?"); err != nil {
			return err
		}
	}
	return pgx.BeginFunc(ctx, t.pool, func(tx pgx.Tx) error {
		for _, statement := range ddl {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
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

// inReadOnly gives an action a transaction that cannot write.
func (t *tool) inReadOnly(ctx context.Context, do func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, t.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, do)
}
