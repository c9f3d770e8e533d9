package gates

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// The keys of the settings an apply depends on.
const (
	SubstrateEnabled = "queue.job_substrate.enabled"
	ReaperEnabled    = "queue.lease.reaper_enabled"
	DryRunOnly       = "queue.lease.reaper_dry_run_only"
	BackoffBaseSec   = "queue.retry.backoff_base_sec"
)

// Keys returns every key that a [Source] is asked for: the three gates in their
// order, then the backoff base.
func Keys() []string {
	return []string{SubstrateEnabled, ReaperEnabled, DryRunOnly, BackoffBaseSec}
}

// Values holds settings by key, in their text form. A key that is absent is
// unset and means its default.
type Values map[string]string

// Source reads settings. Read is called inside the apply's transaction, before
// anything is locked or written, and returns what is set of keys. A source that
// outlives the decision, as a table does, holds its answer still until that
// transaction ends; otherwise a gate may close between the decision and the
// commit. An error means closed, and the apply returns it.
type Source interface {
	Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error)
}

// SourceFunc makes a [Source] of a function, for a feature-flag service, say. A
// panic in it is an error, and so a closed gate. Its answer is not fenced.
type SourceFunc func(ctx context.Context, tx pgx.Tx, keys []string) (Values, error)

// Validate reports a nil function.
func (f SourceFunc) Validate() error {
	if f == nil {
		return errors.New("gates: source function is nil")
	}
	return nil
}

// Read calls f.
func (f SourceFunc) Read(ctx context.Context, tx pgx.Tx, keys []string) (values Values, err error) {
	defer func() {
		if p := recover(); p != nil {
			values, err = nil, fmt.Errorf("gates: source panicked: %v", p)
		}
	}()
	return f(ctx, tx, keys)
}

// gate is one row of the table in the package comment.
type gate struct {
	key   string
	unset bool // what an unset key means
	open  bool // the value that lets an apply through
}

// order returns the gates as they are checked.
func order() [3]gate {
	return [...]gate{
		{key: SubstrateEnabled, unset: false, open: true},
		{key: ReaperEnabled, unset: false, open: true},
		{key: DryRunOnly, unset: true, open: false},
	}
}

// Gate reports whether one gate is open. A key that is no gate's is never open.
func (v Values) Gate(key string) (open bool, err error) {
	for _, g := range order() {
		if g.key == key {
			value, err := v.boolean(g.key, g.unset)
			return err == nil && value == g.open, err
		}
	}
	return false, nil
}

// Closed returns the refusal's reason for the first closed gate, as in
// "queue.lease.reaper_enabled=false", or "" when all are open. A value that is
// not a boolean is a [*ValueError], unless an earlier gate is closed.
func (v Values) Closed() (string, error) {
	for _, g := range order() {
		value, err := v.boolean(g.key, g.unset)
		if err != nil {
			return "", err
		}
		if value != g.open {
			return fmt.Sprintf("%s=%t", g.key, value), nil
		}
	}
	return "", nil
}
