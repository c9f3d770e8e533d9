package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lease-governance/leasereaper/reaper"
)

// scope says which leases count, as the reapers of the queue are configured.
type scope struct {
	kinds, except []string
	grace         time.Duration
}

// addScope gives a command the flags, and the kinds to choose from.
func (t *tool) addScope(cmd *cobra.Command) *cobra.Command {
	flags := cmd.Flags()
	flags.StringSliceVar(&t.scope.kinds, "kind", nil, "only jobs of this kind; may be given more than once")
	flags.StringSliceVar(&t.scope.except, "except-kind", nil, "no jobs of this kind; may be given more than once")
	t.addGrace(flags)
	_ = cmd.RegisterFlagCompletionFunc("kind", t.completeKinds)
	_ = cmd.RegisterFlagCompletionFunc("except-kind", t.completeKinds)
	return cmd
}

func (t *tool) addGrace(flags *pflag.FlagSet) {
	flags.DurationVar(&t.scope.grace, "grace", 0, "how far past its end a lease must be to count as stale")
}

func (s *scope) narrow(cfg *reaper.Config) {
	cfg.Kinds, cfg.ExceptKinds, cfg.Grace = s.kinds, s.except, s.grace
}

// completionPatience bounds the wait for a shell's Tab key.
const completionPatience = 2 * time.Second

// sqlKinds reads the kinds of leased jobs. Served by the index on their lease's
// end.
const sqlKinds = `-- leasereaper.kinds
select distinct {job_kind} from {queue} where {state} = {leased} limit 100`

// completeKinds offers the kinds of jobs that are leased now.
func (t *tool) completeKinds(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return t.offer(cmd, sqlKinds)
}

// offer completes by what a statement reads. After an error there is nothing to
// offer.
func (t *tool) offer(cmd *cobra.Command, statement string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	var kinds []string
	read := func(ctx context.Context, _ []string) error {
		sql, err := t.queue.render(statement)
		if err != nil {
			return err
		}
		kinds, err = collect[string](ctx, t.pool, sql)
		return err
	}
	if !t.embedded {
		_ = t.run(ctx, nil, read)
	}
	return kinds, cobra.ShellCompDirectiveNoFileComp
}
