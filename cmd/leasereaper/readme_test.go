package main

import (
	"os"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"
)

// A command would be there that nobody finds.
func TestTheReadmeHasEveryCommand(t *testing.T) {
	t.Parallel()

	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Runnable() && (!cmd.HasSubCommands() || cmd.Name() == "gates") {
			require.Contains(t, string(readme), "| `"+cmd.CommandPath()+"` |")
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk((&tool{in: os.Stdin, out: os.Stdout, errs: os.Stderr}).root())
}
