package main

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/console"
)

// consoling holds the flags of console.
type consoling struct {
	*tool

	listen, level string
	act           bool
}

func (t *tool) consoleCommand() *cobra.Command {
	c := &consoling{tool: t}
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the console, for a browser",
		Long: `Serve pages that show the databases of the mapping file, or that of --database.
There is no sign-in, so it listens on 127.0.0.1 unless told otherwise, and nobody
can change anything without --act or --level. Then whoever can open the pages acts
in the name of --actor. A production database takes --confirm with its name, too.
Ctrl-C ends it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.listen, "listen", "127.0.0.1:8080", "where to listen; port 0 takes a free one")
	cmd.Flags().BoolVar(&c.act, "act", false, "the same as --level act")
	cmd.Flags().StringVar(&c.level, "level", "look",
		"what may be done: look, act (apply, redrive, purge, close gates), or gates (open gates, too)")
	cmd.MarkFlagsMutuallyExclusive("act", "level")
	_ = cmd.RegisterFlagCompletionFunc("level",
		cobra.FixedCompletions([]string{"look", "act", "gates"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *consoling) run(ctx context.Context) (err error) {
	level, err := c.levelOf()
	if err != nil {
		return err
	}
	databases, shards, closeAll, err := c.databases(ctx, level)
	defer func() { err = errors.Join(err, closeAll()) }()
	if err != nil {
		return err
	}
	handler, err := console.New(console.Config{
		Databases: databases,
		Members:   shards,
		Access:    func(*http.Request) (string, console.Level, error) { return c.actor, level, nil },
		Logger:    slog.New(slog.NewTextHandler(c.errs, nil)),
	})
	if err != nil {
		return &usageError{err.Error()}
	}
	return c.serve(ctx, handler, level)
}

func (c *consoling) levelOf() (console.Level, error) {
	if c.act {
		c.level = console.LevelAct.String()
	}
	for _, level := range []console.Level{console.LevelLook, console.LevelAct, console.LevelGates} {
		if level.String() != c.level {
			continue
		}
		if level > console.LevelLook {
			return level, c.checkActor()
		}
		return level, nil
	}
	return 0, misused("--level %q is none of look, act, gates", c.level)
}

// databases are those that the console shows, with a list of the shards of those that Citus
// distributes, and what closes them.
func (c *consoling) databases(ctx context.Context, level console.Level) (
	databases []console.Database, shards func(context.Context) ([]console.Database, error),
	closeAll func() error, err error,
) {
	var closers []func() error
	var lists []memberList
	closeAll = func() (err error) {
		for _, closeDB := range closers {
			err = errors.Join(err, closeDB())
		}
		return err
	}
	tools, err := c.each()
	if err != nil {
		return nil, nil, closeAll, err
	}
	for _, t := range tools {
		database, closeDB, err := t.shown(ctx, level)
		if err != nil {
			return nil, nil, closeAll, err
		}
		databases, closers = append(databases, database), append(closers, closeDB)
		if !t.queue.citus {
			continue
		}
		list, closeList, err := t.members(false)
		if err != nil {
			return nil, nil, closeAll, err
		}
		lists, closers = append(lists, list), append(closers, func() error { closeList(); return nil })
	}
	if len(lists) > 0 {
		shards = console.OfFleet(joined(lists))
	}
	return databases, shards, closeAll, nil
}

// shown opens the database of a tool for the console: with a pool to look, and another to
// act, unless it is a production database that nobody has named.
func (t *tool) shown(ctx context.Context, level console.Level) (console.Database, func() error, error) {
	closeLook, err := t.open(ctx)
	if err != nil {
		return console.Database{}, nil, err
	}
	cfg := t.queue.reaper
	cfg.MaxStale = t.queue.maxStale
	d := console.Database{Name: cmp.Or(t.queue.name, "queue"), Colour: t.queue.colour, Look: t.pool, Reaper: cfg}
	if t.queue.letters.InPlace {
		d.Letters = &t.queue.letters
	}
	if level == console.LevelLook || t.queue.production && !slices.Contains(t.confirmed, t.queue.name) {
		return d, closeLook, nil
	}
	if d.Act, err = pgxpool.NewWithConfig(ctx, t.pool.Config()); err != nil {
		return console.Database{}, nil, errors.Join(err, closeLook())
	}
	return d, func() error { d.Act.Close(); return closeLook() }, nil
}
