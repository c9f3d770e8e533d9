package gates

import (
	"fmt"
	"time"
)

// The keys of the settings an apply depends on.
const (
	SubstrateEnabled = "queue.job_substrate.enabled"
	ReaperEnabled    = "queue.lease.reaper_enabled"
	DryRunOnly       = "queue.lease.reaper_dry_run_only"
	WindowUntil      = "queue.lease.reaper_window_until"
	BackoffBaseSec   = "queue.retry.backoff_base_sec"
)

// Keys returns every key that a [Source] is asked for: the gates in their
// order, the window's end, then the backoff base.
func Keys() []string {
	var keys []string
	for _, g := range all() {
		keys = append(keys, g.key)
	}
	return append(keys, WindowUntil, BackoffBaseSec)
}

// Values holds settings by key, in their text form. A key that is absent is
// unset and means its default.
type Values map[string]string

// gate is one row of the table in the package comment.
type gate struct {
	key   string
	unset bool // what an unset key means
	open  bool // the value that lets an apply through
}

// all returns the gates in the order in which they are checked.
func all() []gate {
	return []gate{
		{key: SubstrateEnabled, unset: false, open: true},
		{key: ReaperEnabled, unset: false, open: true},
		{key: DryRunOnly, unset: true, open: false},
	}
}

// Gate reports whether one gate is open; of [WindowUntil], whether a window is
// unset or has not ended by now, as in [Values.Refusal]. Any other key is never
// open.
func (v Values) Gate(key string, now time.Time) (open bool, err error) {
	if key == WindowUntil {
		reason, err := v.ended(now)
		return err == nil && reason == "", err
	}
	g, ok := gateOf(key)
	if !ok {
		return false, nil
	}
	value, err := v.boolean(g.key, g.unset)
	return err == nil && value == g.open, err
}

// gateOf returns the gate of a key, if it is one of the gates'.
func gateOf(key string) (gate, bool) {
	for _, g := range all() {
		if g.key == key {
			return g, true
		}
	}
	return gate{}, false
}

// Refusal returns the reason for the first closed gate, as in
// "queue.lease.reaper_enabled=false", or "" when all are open. After the gates
// comes the window: one whose end is before now is
// "queue.lease.reaper_window_until=" and the end as it is written. now is the
// database's clock, at the start of the transaction.
//
// A value that is not what its key needs is a [*ValueError], unless an earlier
// gate is closed.
func (v Values) Refusal(now time.Time) (reason string, err error) {
	for _, g := range all() {
		value, err := v.boolean(g.key, g.unset)
		if err != nil {
			return "", err
		}
		if value != g.open {
			return fmt.Sprintf("%s=%t", g.key, value), nil
		}
	}
	return v.ended(now)
}
