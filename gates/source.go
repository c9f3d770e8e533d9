package gates

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

// Source reads settings. Read is called inside the apply's transaction, before any job
// is locked or written. It returns the values of those keys that are set. To be a fence,
// it locks the settings until that transaction ends; otherwise a gate may close between
// the decision and the commit. If Read returns an error, the apply returns it and
// changes nothing.
type Source interface {
	Read(ctx context.Context, tx pgx.Tx, keys []string) (Values, error)
}

// SourceFunc makes a [Source] of a function, such as a call of a feature-flag service. A
// panic in it becomes an error. It is no fence.
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

// read reads settings in a round trip of its own.
func read(
	ctx context.Context, tx pgx.Tx, source gatesql.Source, keys []string, lock bool,
) (*gatesql.Answer, error) {
	b := &pgx.Batch{}
	answer := source.Queue(b, keys, lock)
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("gates: read settings: %w", err)
	}
	return answer, nil
}

var _ Source = Static{}

// Static is a [Source] with fixed values, for tests and for services that decide at
// start-up. In its zero value the first gate is closed. All three keys are set, so the
// zero value of DryRunOnly is an open gate. There is no window, and the backoff base has
// its default.
type Static struct {
	SubstrateEnabled bool
	ReaperEnabled    bool
	DryRunOnly       bool
}

// Read returns the three fixed values. It does not use tx.
func (s Static) Read(context.Context, pgx.Tx, []string) (Values, error) {
	return Values{
		SubstrateEnabled: strconv.FormatBool(s.SubstrateEnabled),
		ReaperEnabled:    strconv.FormatBool(s.ReaperEnabled),
		DryRunOnly:       strconv.FormatBool(s.DryRunOnly),
	}, nil
}
