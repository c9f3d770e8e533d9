package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/spf13/cobra"

	"github.com/lease-governance/leasereaper/gates"
)

func (t *tool) gatesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "gates",
		Short: "Show the gates, and who set them when",
		Long:  "Show the gates and the other settings, who changed each and when, and whether an apply may go ahead.",
		Args:  cobra.NoArgs,
		RunE:  t.reads(func(ctx context.Context, _ []string) error { return t.showGates(ctx) }),
	}
	cmd.AddCommand(t.gatesSetCommand(), t.gatesUnsetCommand())
	return cmd
}

// gateState is what the settings say at one moment, and the JSON of gates.
type gateState struct {
	EvaluatedAt time.Time      `json:"evaluated_at"` // by the database's clock
	MayApply    bool           `json:"may_apply"`
	Reason      string         `json:"reason,omitempty"` // why an apply would be refused, or fail
	Settings    []settingState `json:"settings"`

	window      pgtype.Timestamptz // not valid: none
	backoffBase int64              // in seconds
}

// settingState is one setting.
type settingState struct {
	Key       string     `json:"key"`
	Value     *string    `json:"value"`          // nil: unset
	Open      *bool      `json:"open,omitempty"` // of a gate
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
	UpdatedBy *string    `json:"updated_by,omitempty"`
}

// sqlStamps reads who changed settings and when, where the table has that. Served
// by the primary key on key.
//
//	$1 keys  text[]
const sqlStamps = `-- leasereaper.stamps
select c.key,
  (to_jsonb(c) ->> 'updated_at')::timestamptz as updated_at,
  to_jsonb(c) ->> 'updated_by' as updated_by
from {settings} c
where c.key = any($1::text[])`

func (t *tool) showGates(ctx context.Context) error {
	state, err := t.gateState(ctx)
	if err != nil {
		return err
	}
	if t.json {
		return t.printJSON(state)
	}
	printGates(t.out, state)
	return nil
}

// readGates reads the settings without locking them.
func (t *tool) readGates(ctx context.Context, tx pgx.Tx) (*gateState, error) {
	sql, err := t.queue.render(sqlStamps)
	if err != nil {
		return nil, err
	}
	batch := &pgx.Batch{}
	state, stamps := &gateState{}, map[string]settingState{}
	batch.Queue("select now()").QueryRow(func(row pgx.Row) error { return row.Scan(&state.EvaluatedAt) })
	batch.Queue(sql, gates.Keys()).Query(func(rows pgx.Rows) error {
		var s settingState
		_, err := pgx.ForEachRow(rows, []any{&s.Key, &s.UpdatedAt, &s.UpdatedBy}, func() error {
			stamps[s.Key] = s
			return nil
		})
		return err
	})
	if err := tx.SendBatch(ctx, batch).Close(); err != nil {
		return nil, err
	}
	values, err := t.queue.settings.ReadUnlocked(ctx, tx, gates.Keys())
	if err != nil {
		return nil, err
	}
	state.fill(values, stamps)
	return state, nil
}

// fill adds what the settings' values mean.
func (s *gateState) fill(values gates.Values, stamps map[string]settingState) {
	s.EvaluatedAt = s.EvaluatedAt.UTC()
	reason, err := values.Refusal(s.EvaluatedAt)
	if err != nil {
		reason = err.Error()
	}
	s.Reason, s.MayApply = reason, reason == ""
	s.backoffBase, _ = values.BackoffBase() // a wrong value shows among the settings
	s.window, _ = values.Window()
	for _, key := range gates.Keys() {
		setting := stamps[key]
		setting.Key = key
		if value, set := values[key]; set {
			setting.Value = &value
		}
		if isGate(key) {
			open, err := values.Gate(key, s.EvaluatedAt)
			open = open && err == nil
			setting.Open = &open
		}
		s.Settings = append(s.Settings, setting)
	}
}

func isGate(key string) bool {
	return key != gates.WindowUntil && key != gates.BackoffBaseSec
}

func printGates(out io.Writer, state *gateState) {
	rows := make([][]string, len(state.Settings))
	for i, s := range state.Settings {
		rows[i] = []string{s.Key, cellOf(s.Value), state.of(s), s.changed(state.EvaluatedAt)}
	}
	printTable(out, []string{"SETTING", "VALUE", "STATE", "CHANGED"}, rows)
	fmt.Fprintln(out)
	fmt.Fprintln(out, state.verdict())
}

func (s *gateState) verdict() string {
	if s.MayApply {
		return "An apply may go ahead."
	}
	return "An apply would not go ahead: " + clean(s.Reason)
}

// of says what a setting does to an apply.
func (s *gateState) of(setting settingState) string {
	switch {
	case setting.Key == gates.WindowUntil:
		return s.windowState()
	case setting.Open == nil:
		return none
	case *setting.Open:
		return "open"
	}
	return "closed"
}

// windowState says how long the window lasts.
func (s *gateState) windowState() string {
	until := s.window
	switch {
	case !until.Valid:
		return none
	case until.InfinityModifier == pgtype.Infinity:
		return "no end"
	case until.InfinityModifier == pgtype.NegativeInfinity:
		return "over"
	case until.Time.Before(s.EvaluatedAt):
		return "over, " + moment(until.Time, s.EvaluatedAt)
	}
	return "until " + moment(until.Time, s.EvaluatedAt)
}

// changed says when, and by whom, as far as the table has it.
func (s settingState) changed(now time.Time) string {
	switch {
	case s.UpdatedAt == nil:
		return none
	case s.UpdatedBy == nil:
		return moment(*s.UpdatedAt, now)
	}
	return moment(*s.UpdatedAt, now) + " by " + clean(*s.UpdatedBy)
}
