package console

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/lease-governance/leasereaper/gates"
)

// gateState is what the settings say at one moment.
type gateState struct {
	EvaluatedAt time.Time      `json:"evaluated_at"` // by the database's clock
	MayApply    bool           `json:"may_apply"`
	Reason      string         `json:"reason,omitempty"` // why an apply would be refused, or fail
	Settings    []settingState `json:"settings"`
	Window      *time.Time     `json:"window_until,omitempty"` // nil: there is none, or it is infinite

	Settable bool `json:"-"` // they are in a table
}

// settingState is one setting.
type settingState struct {
	Key       string     `json:"key"`
	Value     *string    `json:"value"`          // nil: unset
	Open      *bool      `json:"open,omitempty"` // of a gate
	UpdatedAt *time.Time `json:"updated_at,omitempty"`
	UpdatedBy *string    `json:"updated_by,omitempty"`
}

// Gate reports whether the setting is a gate.
func (s settingState) Gate() bool { return s.Open != nil }

// readGates reads the settings without locking them.
func (d *database) readGates(ctx context.Context, tx pgx.Tx) (*gateState, error) {
	state := &gateState{Settable: d.settings != nil, Settings: []settingState{}}
	if err := tx.QueryRow(ctx, "select now()").Scan(&state.EvaluatedAt); err != nil {
		return nil, err
	}
	values, err := d.readValues(ctx, tx)
	if err != nil {
		return nil, err
	}
	stamps := map[string]settingState{}
	if d.settings != nil {
		if stamps, err = d.readStamps(ctx, tx); err != nil {
			return nil, err
		}
	}
	state.fill(values, stamps)
	return state, nil
}

// readValues asks the source; a table is read without its locks.
func (d *database) readValues(ctx context.Context, tx pgx.Tx) (gates.Values, error) {
	if d.settings != nil {
		return d.settings.ReadUnlocked(ctx, tx, gates.Keys())
	}
	return d.cfg.Reaper.Gates.Read(ctx, tx, gates.Keys())
}

func (d *database) readStamps(ctx context.Context, tx pgx.Tx) (map[string]settingState, error) {
	rows, err := tx.Query(ctx, d.sql.stamps, gates.Keys())
	if err != nil {
		return nil, err
	}
	stamps := map[string]settingState{}
	var s settingState
	_, err = pgx.ForEachRow(rows, []any{&s.Key, &s.UpdatedAt, &s.UpdatedBy}, func() error {
		stamps[s.Key] = s
		return nil
	})
	return stamps, err
}

// fill adds what the settings' values mean.
func (g *gateState) fill(values gates.Values, stamps map[string]settingState) {
	g.EvaluatedAt = g.EvaluatedAt.UTC()
	reason, err := values.Refusal(g.EvaluatedAt)
	if err != nil {
		reason = err.Error()
	}
	g.Reason, g.MayApply = reason, reason == ""
	if until, err := values.Window(); err == nil && until.Valid && until.InfinityModifier == pgtype.Finite {
		g.Window = &until.Time
	}
	for _, key := range gates.Keys() {
		setting := stamps[key]
		setting.Key = key
		if value, set := values[key]; set {
			setting.Value = &value
		}
		if isGate(key) {
			open, err := values.Gate(key, g.EvaluatedAt)
			open = open && err == nil
			setting.Open = &open
		}
		g.Settings = append(g.Settings, setting)
	}
}

func isGate(key string) bool {
	return key == gates.SubstrateEnabled || key == gates.ReaperEnabled || key == gates.DryRunOnly
}
