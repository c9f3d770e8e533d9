package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/reaper"
)

// tool is one call of the program: where it reads and writes, its flags, and
// the database once that is open.
type tool struct {
	in   *os.File
	out  io.Writer
	errs io.Writer

	url, urlName     string // the connection string, and where it is from
	config, database string
	embedded         bool
	actor            string
	json             bool
	yes              bool
	confirmed        []string // names of production databases
	flags            mappingFlags
	scope            scope

	loaded bool    // queue is known
	queue  mapping // what the command works on
	began  bool    // the flags were right, and a command has begun
	pool   *pgxpool.Pool
}

// main runs the command that args name and returns the exit status.
func (t *tool) main(ctx context.Context, args []string) int {
	root := t.root()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !unknown(err) && (ctx.Err() != nil || errors.Is(err, context.Canceled)) {
		err = errInterrupted // whatever it ended: a connection, a statement, a question
	}
	if err != nil {
		t.json = t.json || slices.Contains(args, "--json") // also if the flags were wrong
		t.complain(err)
	}
	return t.status(err)
}

// action is the work of a command, with an open database.
type action func(ctx context.Context, args []string) error

// reads makes a command of an action that changes nothing.
func (t *tool) reads(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		return t.run(cmd.Context(), args, do)
	}
}

// changes makes a command of an action that changes a table: somebody must have
// said yes, or be there to say it, and it must be known who.
func (t *tool) changes(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		if err := t.load(); err != nil {
			return err
		}
		if err := errors.Join(t.checkActor(), t.checkYes()); err != nil {
			return err
		}
		return t.run(cmd.Context(), args, do)
	}
}

func (t *tool) run(ctx context.Context, args []string, do action) (err error) {
	if err := t.load(); err != nil {
		return err
	}
	closeDB, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeDB()) }()
	return t.explain(ctx, do(ctx, args))
}

// reaper makes a Reaper for the mapped queue and the kinds that flags name.
func (t *tool) reaper(change func(*reaper.Config)) (*reaper.Reaper, error) {
	cfg := t.queue.reaper
	if err := t.scope.narrow(&cfg); err != nil {
		return nil, err
	}
	if change != nil {
		change(&cfg)
	}
	r, err := reaper.New(t.pool, cfg)
	if err != nil {
		return nil, &usageError{err.Error()}
	}
	return r, nil
}
