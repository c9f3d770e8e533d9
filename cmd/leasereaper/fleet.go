package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper/fleet"
	"github.com/lease-governance/leasereaper/reaper/fleet/citus"
)

func (t *tool) fleetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "fleet",
		Short: "Look at all databases of the mapping file, or act on all",
		Long: `All databases of the mapping file at once. Of one with "citus: true" each shard
of the queue is asked. A database that fails stops no other; then the exit status
is 1.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(t.fleetDryRunCommand(), t.fleetVerifyCommand(), t.fleetDrainCommand(), t.fleetCloseCommand())
	return cmd
}

func (t *tool) fleetDryRunCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "dry-run",
		Short: "Show how many leases are stale in each database",
		Args:  cobra.NoArgs,
		RunE:  t.looksAtAll(t.fleetDryRun),
	}
}

func (t *tool) fleetVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Look for what would keep a reaper from working, in each database",
		Args:  cobra.NoArgs,
		RunE:  t.looksAtAll(t.fleetVerify),
	}
}

func (t *tool) fleetDrainCommand() *cobra.Command {
	var batch int
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Reset or move all jobs with stale leases in each database",
		Args:  cobra.NoArgs,
		RunE: t.changesAll("Reap all stale leases in", false, func(ctx context.Context, f *fleet.Fleet) error {
			return t.fleetDrain(ctx, f, batch)
		}),
	}
	cmd.Flags().IntVar(&batch, "batch", applyLimit, "reap at most so many jobs in one transaction")
	return cmd
}

func (t *tool) fleetCloseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "close",
		Short: "Close the reaper's gate in each database, so that nothing is reaped",
		Long: `Set queue.lease.reaper_enabled to false in every database, all at the same time,
with at most five seconds for each. When it is done, no apply commits any more
in those that it names as closed.`,
		Args: cobra.NoArgs,
		RunE: t.changesAll("Close the reaper's gate in", true, t.fleetClose),
	}
}

// looksAtAll makes a command of what asks all databases.
func (t *tool) looksAtAll(do func(context.Context, *fleet.Fleet) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		tools, err := t.each()
		if err != nil {
			return err
		}
		return t.withFleet(cmd.Context(), tools, false, do)
	}
}

// changesAll makes a command of what changes all databases. It asks once.
func (t *tool) changesAll(
	question string, whole bool, do func(context.Context, *fleet.Fleet) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		tools, err := t.each()
		if err != nil {
			return err
		}
		if err := errors.Join(t.checkActor(), t.checkAll(tools)); err != nil {
			return err
		}
		if err := t.confirm(cmd.Context(), question+" "+namesOf(tools)+"?"); err != nil {
			return err
		}
		return t.withFleet(cmd.Context(), tools, whole, do)
	}
}

// checkAll reports that nobody has said yes and nobody can be asked, and the production
// databases that are not named.
func (t *tool) checkAll(tools []*tool) error {
	var unnamed []string
	for _, one := range tools {
		if one.queue.production && !slices.Contains(t.confirmed, one.queue.name) {
			unnamed = append(unnamed, one.queue.name)
		}
	}
	switch {
	case len(unnamed) > 0:
		return misused("in production: add --confirm %s", strings.Join(unnamed, ","))
	case t.yes || isTerminal(t.in):
		return nil
	}
	return misused("this changes tables and there is no terminal to ask on: say --yes")
}

func namesOf(tools []*tool) string {
	names := make([]string, len(tools))
	for i, one := range tools {
		names[i] = cmp.Or(one.queue.name, "queue")
	}
	return strings.Join(names, ", ")
}

// withFleet opens the databases, and calls do with a fleet of them. A Citus database is its
// shards, or if whole its coordinator.
func (t *tool) withFleet(
	ctx context.Context, tools []*tool, whole bool, do func(context.Context, *fleet.Fleet) error,
) (err error) {
	var lists []memberList
	var closers []func() error
	defer func() {
		for _, closeOne := range closers {
			err = errors.Join(err, closeOne())
		}
	}()
	for _, one := range tools {
		closeDB, err := one.open(ctx)
		if err != nil {
			return err
		}
		list, closeList, err := one.members(whole)
		closers = append(closers, func() error { closeList(); return closeDB() })
		if err != nil {
			return err
		}
		lists = append(lists, list)
	}
	t.began = true
	f, err := fleet.New(fleet.Config{Members: joined(lists)})
	if err != nil {
		return err
	}
	return do(ctx, f)
}

// memberList lists members of a fleet.
type memberList func(context.Context) ([]fleet.Member, error)

// joined is several lists as one.
func joined(lists []memberList) memberList {
	return func(ctx context.Context) (all []fleet.Member, err error) {
		for _, list := range lists {
			some, err := list(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
		return all, nil
	}
}

// members lists what a database brings into the fleet.
func (t *tool) members(whole bool) (list memberList, closeList func(), err error) {
	name, cfg := cmp.Or(t.queue.name, "queue"), t.queue.reaper
	closeList = func() {}
	if !t.queue.citus || whole {
		member := fleet.Member{Name: name, DB: t.pool, Config: cfg}
		return func(context.Context) ([]fleet.Member, error) { return []fleet.Member{member}, nil }, closeList, nil
	}
	shards, err := citus.New(t.pool, citus.Config{Reaper: cfg})
	if err != nil {
		return nil, closeList, fmt.Errorf("%s: %w", name, err)
	}
	return func(ctx context.Context) ([]fleet.Member, error) {
		found, err := shards.Members(ctx)
		if err != nil { // the coordinator's failure is its own outcome
			return []fleet.Member{{Name: name, DB: unlisted{err}, Config: cfg}}, nil //nolint:nilerr // it is there
		}
		for i := range found {
			found[i].Name = name + " " + found[i].Name
		}
		return found, nil
	}, shards.Close, nil
}

// unlisted is the DB of a Citus database whose shards could not be listed.
type unlisted struct{ err error }

// Begin fails.
func (u unlisted) Begin(context.Context) (pgx.Tx, error) { return nil, u.err }
