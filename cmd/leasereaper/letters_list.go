package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/deadletter"
)

func (t *tool) listCommand() *cobra.Command {
	var flags letterFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "list [ID...]",
		Short: "List dead letters, oldest first",
		Long: `List dead letters, oldest first: those that the ids name and the flags let
through. What the jobs held is not read.`,
		RunE: t.reads(func(ctx context.Context, ids []string) error {
			return t.list(ctx, flags.filter(ids), limit)
		}),
	}
	flags.add(t, cmd)
	cmd.Flags().StringVar(&flags.Status, "status", deadletter.StatusAny, "only those that are unredriven, or redriven")
	cmd.Flags().StringVar(&flags.After, "after", "", "only those behind this place, which the page before has named")
	cmd.Flags().IntVar(&limit, "limit", lookLimit, "list at most so many")
	_ = cmd.RegisterFlagCompletionFunc("status", cobra.FixedCompletions(
		[]string{deadletter.StatusUnredriven, deadletter.StatusRedriven}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (t *tool) list(ctx context.Context, filter deadletter.Filter, limit int) error {
	page, err := t.page(ctx, filter, limit)
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(page)
	}
	rows := make([][]string, len(page.Letters))
	for i, letter := range page.Letters {
		rows[i] = letterRow(page)(letter)
	}
	if len(rows) == 0 {
		fmt.Fprintln(t.out, "no dead letters")
		return nil
	}
	printTable(t.out, letterHeader(), rows)
	if page.Next != "" {
		fmt.Fprintf(t.out, "\nThere may be more: --after %s\n", clean(page.Next))
	}
	return nil
}
