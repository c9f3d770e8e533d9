package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

func (t *tool) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check the mapping file",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	var offline bool
	check := &cobra.Command{
		Use:   "check",
		Short: "Report every fault of the mapping file, and what its databases have",
		Long: `Read the mapping file and report every fault of it, with its line. Then connect
to each database, or to that of --database, and report missing tables and what
verify finds.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return t.checkConfig(cmd.Context(), offline) },
	}
	check.Flags().BoolVar(&offline, "offline", false, "only read the file, connect to no database")
	cmd.AddCommand(check)
	return cmd
}

// checkedFile is the JSON of config check.
type checkedFile struct {
	File      string            `json:"file"`
	Faults    []string          `json:"faults,omitempty"` // of the file itself
	Databases []checkedDatabase `json:"databases"`
}

// checkedDatabase is what one database of the file has.
type checkedDatabase struct {
	Name     string           `json:"database"`
	Default  bool             `json:"default,omitempty"`
	Place    string           `json:"place,omitempty"`    // which database this is
	Missing  []string         `json:"missing,omitempty"`  // tables
	Problems []reaper.Problem `json:"problems,omitempty"` // verify's
	Error    string           `json:"error,omitempty"`    // why it could not be checked
}

func (t *tool) checkConfig(ctx context.Context, offline bool) error {
	path, err := findFile(t.config)
	if err != nil {
		return err
	}
	if path == "" {
		return misused("there is no %s here or in the user's configuration; --config names one", fileName)
	}
	t.began = true // what comes is about the file, not about the call
	f, err := readMappingFile(path)
	var faulty *fileError
	switch {
	case errors.As(err, &faulty):
		return t.printChecked(checkedFile{File: path, Faults: faulty.faults, Databases: []checkedDatabase{}})
	case err != nil:
		return err
	}
	checked, err := t.checkDatabases(ctx, f, offline)
	if err != nil {
		return err
	}
	return t.printChecked(checked)
}

// checkDatabases looks at the databases of the file, or at that of --database.
func (t *tool) checkDatabases(ctx context.Context, f *file, offline bool) (checkedFile, error) {
	names := f.names()
	if t.database != "" {
		name, err := f.choose(t.database)
		if err != nil {
			return checkedFile{}, err
		}
		names = []string{name}
	}
	checked := checkedFile{File: f.path}
	for _, name := range names {
		database := checkedDatabase{Name: name, Default: name == f.Default || len(f.Databases) == 1}
		if !offline {
			t.checkDatabase(ctx, f, &database)
		}
		checked.Databases = append(checked.Databases, database)
	}
	return checked, nil
}

// checkTimeout bounds the check of one database.
const checkTimeout = 30 * time.Second

// checkDatabase connects to a database of the file and looks at its tables.
func (t *tool) checkDatabase(ctx context.Context, f *file, database *checkedDatabase) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	report, err := t.verifyDatabase(ctx, f, database)
	switch {
	case err != nil:
		database.Error = message(err)
	case len(database.Missing) == 0:
		database.Problems = report.Problems
	}
}

func (t *tool) verifyDatabase(ctx context.Context, f *file, database *checkedDatabase) (*reaper.Report, error) {
	m := f.Databases[database.Name].mapping(f.path, database.Name)
	config, err := f.Databases[database.Name].poolConfig()
	if err != nil {
		return nil, err
	}
	database.Place = place(config.ConnConfig)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	if database.Missing, _, err = missingTables(ctx, pool, m.tables()); err != nil {
		return nil, err
	}
	r, err := reaper.New(pool, m.reaper)
	if err != nil {
		return nil, err
	}
	return r.Verify(ctx)
}

// printChecked prints what was found. What keeps a reaper from working is an error.
func (t *tool) printChecked(checked checkedFile) error {
	faults := len(checked.Faults)
	for _, d := range checked.Databases {
		faults += d.faults()
	}
	switch {
	case t.json:
		if err := t.printJSON(checked); err != nil {
			return err
		}
	case len(checked.Faults) > 0:
		for _, fault := range checked.Faults {
			fmt.Fprintln(t.out, clean(fault))
		}
	default:
		fmt.Fprintf(t.out, "%s: %s\n", clean(checked.File), count(len(checked.Databases), "database", "databases"))
		for _, d := range checked.Databases {
			t.printCheckedDatabase(d)
		}
	}
	switch faults {
	case 0:
		return nil
	case 1:
		return errors.New("1 problem to solve")
	}
	return fmt.Errorf("%d problems to solve", faults)
}

// faults counts what keeps a reaper from working.
func (d *checkedDatabase) faults() int {
	faults := len(d.Missing)
	for _, problem := range d.Problems {
		if problem.Severity == reaper.SeverityError {
			faults++
		}
	}
	if d.Error != "" {
		faults++
	}
	return faults
}

func (t *tool) printCheckedDatabase(d checkedDatabase) {
	line := d.Name
	if d.Place != "" {
		line += "  " + d.Place
	}
	if d.Default {
		line += "  (default)"
	}
	fmt.Fprintln(t.out, clean(line))
	switch {
	case d.Error != "":
		fmt.Fprintln(t.out, "  error    "+clean(d.Error))
	case len(d.Missing) > 0:
		fmt.Fprintln(t.out, "  error    there is no "+clean(strings.Join(d.Missing, ", "))+
			": leasereaper init creates it")
	case d.Place != "" && len(d.Problems) == 0:
		fmt.Fprintln(t.out, "  no problems")
	}
	for _, problem := range d.Problems {
		fmt.Fprintf(t.out, "  %-7s  %s %s: %s\n", problem.Severity, problem.Code, clean(problem.Object),
			clean(problem.Message))
	}
}
