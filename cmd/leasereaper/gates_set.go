package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/gates"
)

func (t *tool) gatesSetCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "Set a gate, or another setting",
		Long: `Set a gate, or another setting an apply depends on, and write down who did and
when. Only keys and values that mean something are taken. When a gate has been
closed, no apply commits after that.`,
		Args:              cobra.ExactArgs(2),
		ValidArgsFunction: completeKeys,
		RunE: t.changes(func(ctx context.Context, args []string) error {
			return t.setGate(ctx, args[0], &args[1])
		}),
	}
}

func (t *tool) gatesUnsetCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "unset KEY",
		Short:             "Remove a setting, so that its default holds",
		Long:              "Remove a setting, so that its default holds: a gate is closed then.",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeKeys,
		RunE: t.changes(func(ctx context.Context, args []string) error {
			return t.setGate(ctx, args[0], nil)
		}),
	}
}

// completeKeys offers the keys, and then the values of a gate.
func completeKeys(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return gates.Keys(), cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && cmd.Name() == "set" && isGate(args[0]):
		return []string{"true", "false"}, cobra.ShellCompDirectiveNoFileComp
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// setGate sets a key, or unsets it for a nil value, and shows what that makes of
// all of them.
func (t *tool) setGate(ctx context.Context, key string, value *string) error {
	if err := checkSetting(key, value); err != nil {
		return err
	}
	if err := t.confirmSetting(ctx, key, value); err != nil {
		return err
	}
	table := t.queue.settings
	var err error
	if value == nil {
		err = table.Unset(ctx, t.pool, t.actor, key)
	} else {
		err = table.Set(ctx, t.pool, t.actor, key, *value)
	}
	if err != nil {
		return err
	}
	return t.showGates(ctx)
}

// checkSetting reports a key or a value that means nothing, before anybody is
// asked.
func checkSetting(key string, value *string) error {
	values := gates.Values{}
	if value != nil {
		values[key] = *value
	}
	if err := values.Check(key); err != nil {
		return &usageError{err.Error()}
	}
	return nil
}

func (t *tool) confirmSetting(ctx context.Context, key string, value *string) error {
	if t.yes {
		return nil
	}
	state, err := t.gateState(ctx)
	if err != nil {
		return err
	}
	for _, s := range state.Settings {
		if s.Key == key {
			fmt.Fprintf(t.errs, "%s is %s, changed %s.\n", key, orUnset(s.Value), s.changed(state.EvaluatedAt))
		}
	}
	return t.confirm(ctx, fmt.Sprintf("Make it %s?", orUnset(value)))
}

func orUnset(value *string) string {
	if value == nil {
		return "unset"
	}
	return clean(fmt.Sprintf("%q", *value))
}

// gateState reads the settings in a transaction of their own.
func (t *tool) gateState(ctx context.Context) (*gateState, error) {
	var state *gateState
	err := t.inReadOnly(ctx, func(tx pgx.Tx) (err error) {
		state, err = t.readGates(ctx, tx)
		return err
	})
	return state, err
}
