package main

import (
	"os/user"

	"github.com/spf13/cobra"
)

const about = `Operator shows and changes a job queue in PostgreSQL that a lease reaper works on.

Commands that change a table show the change first and ask, unless --yes is
given. Every change has an actor: --actor.

Exit status: 0 done, 1 error, or not all could be done, 2 wrong use, 3 refused,
for instance by a closed gate.`

// root is the command with all others below it.
func (t *tool) root() *cobra.Command {
	root := &cobra.Command{
		Use:           "leasereaper",
		Version:       version(),
		Short:         "Operate a job queue and its reaper",
		Long:          about,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs, // so that a mistyped command is an error
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	root.SetOut(t.out)
	root.SetErr(t.errs)
	t.addFlags(root)
	root.AddCommand(
		t.gatesCommand(), t.dryRunCommand(), t.planCommand(), t.applyCommand(), t.drainCommand(),
		t.fleetCommand(), t.lettersCommand(), t.windowCommand(), t.verifyCommand(), t.watchCommand(), t.initCommand(),
		t.configCommand(), t.consoleCommand(),
	)
	return root
}

func (t *tool) addFlags(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.StringVar(&t.config, "config", "", "mapping file; none reads none (default: LEASEREAPER_CONFIG, or "+
		fileName+" here or in the user's configuration)")
	flags.StringVar(&t.database, "database", "",
		"which database of the mapping file (default: its default, or the only one)")
	_ = root.RegisterFlagCompletionFunc("database", t.completeDatabases)
	flags.StringVar(&t.url, "database-url", "",
		"connection string (default: the mapping file's, or what DATABASE_URL holds)")
	flags.BoolVar(&t.embedded, "embedded", false, "a temporary database with a few jobs in it, for a try")
	flags.StringVar(&t.actor, "actor", defaultActor(), "in whose name tables are changed")
	flags.BoolVar(&t.json, "json", false, "print JSON for programs instead of tables for people")
	flags.BoolVar(&t.yes, "yes", false, "change tables without asking")
	flags.StringSliceVar(&t.confirmed, "confirm", nil, "name of a production database that --yes may change")
	t.flags.add(flags)
}

// defaultActor is who runs the tool, as the operating system knows them.
func defaultActor() string {
	who, err := user.Current()
	if err != nil || who.Username == "" {
		return ""
	}
	return "operator:" + who.Username
}
