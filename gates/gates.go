package gates

import (
	"fmt"
	"time"
)

// The keys of the settings that an apply reads.
const (
	SubstrateEnabled = "queue.job_substrate.enabled"
	ReaperEnabled    = "queue.lease.reaper_enabled"
	DryRunOnly       = "queue.lease.reaper_dry_run_only"
	WindowUntil      = "queue.lease.reaper_window_until"
	BackoffBaseSec   = "queue.retry.backoff_base_sec"
)

// Keys returns every key that a [Source] reads: the gates in their order, the window's
// end, then the backoff base.
func Keys() []string {
	var keys []string
	for _, g := range all() {
		keys = append(keys, g.key)
	}
	return append(keys, WindowUntil, BackoffBaseSec)
}

// Values holds settings by key, in their text form. An absent key is unset: its default
// holds.
type Values map[string]string

// gate is one row of the table in the package comment.
type gate struct {
	key   string
	unset bool // the value of an unset key
	open  bool // the value that opens the gate
}

// all returns the gates in the order in which they are checked.
func all() []gate {
	return []gate{
		{key: SubstrateEnabled, unset: false, open: true},
		{key: ReaperEnabled, unset: false, open: true},
		{key: DryRunOnly, unset: true, open: false},
	}
}

// Gate reports whether one gate is open. For [WindowUntil] it reports whether no window
// is set or the window has not ended by now, as in [Values.Refusal]. Any other key is
// never open.
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

// gateOf returns the gate with a key, if there is one.
func gateOf(key string) (gate, bool) {
	for _, g := range all() {
		if g.key == key {
			return g, true
		}
	}
	return gate{}, false
}

// Refusal returns the reason why an apply is refused, or "" when it may go ahead. The
// reason is the first closed gate, as in "queue.lease.reaper_enabled=false". After the
// gates it is a window whose end is before now:
// "queue.lease.reaper_window_until=" and the end as it is stored. now is the database's
// clock at the start of the transaction.
//
// An invalid value is a [*ValueError], unless an earlier gate is closed.
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
