package main

import (
	"context"
	"slices"
	"strings"
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

// narrow leaves leases out of those that are stale for the mapping. It never adds one: a
// reaper of this mapping would not reap it.
func (s *scope) narrow(cfg *reaper.Config) error {
	for _, kind := range s.kinds {
		if cfg.Kinds != nil && !slices.Contains(cfg.Kinds, kind) {
			return misused("--kind %s is none of the mapping's: %s", kind, strings.Join(cfg.Kinds, ", "))
		}
	}
	if s.kinds != nil {
		cfg.Kinds = s.kinds
	}
	cfg.ExceptKinds = slices.Concat(cfg.ExceptKinds, s.except)
	return s.wait(cfg)
}

// wait makes each grace the flag's, which may not be shorter.
func (s *scope) wait(cfg *reaper.Config) error {
	if s.grace == 0 {
		return nil
	}
	longest := cfg.Grace
	for _, grace := range cfg.KindGrace {
		longest = max(longest, grace)
	}
	switch {
	case s.grace < 0:
		return misused("--grace %s is negative", s.grace)
	case s.grace < longest:
		return misused("--grace %s is shorter than the mapping's %s: leases may be alive", s.grace, longest)
	}
	cfg.Grace, cfg.KindGrace = s.grace, nil
	return nil
}

// completionPatience bounds the wait for a shell's Tab key.
const completionPatience = 2 * time.Second

// sqlKinds reads the kinds of leased jobs. Served by the index on their lease's
// end.
const sqlKinds = `-- leasereaper.kinds
select distinct {kind_text} from {queue} q where {is_leased}{only_columns} limit 100`

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

// completeDatabases offers the names of a mapping file.
func (t *tool) completeDatabases(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	path, err := findFile(t.config)
	if err != nil || path == "" {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	f, err := readMappingFile(path)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.names(), cobra.ShellCompDirectiveNoFileComp
}
