package gates

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/lease-governance/leasereaper/internal/gatesql"
)

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

// read reads settings in an exchange of its own.
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

// Static is a [Source] with fixed answers, for tests and for services whose
// configuration decides at start-up. Its zero value is closed at the first gate.
// All three keys are set, so DryRunOnly's zero value is an open third gate. There
// is no window, and the backoff base stays at its default.
type Static struct {
	SubstrateEnabled bool
	ReaperEnabled    bool
	DryRunOnly       bool
}

// Read returns the three fixed answers. It does not touch tx.
func (s Static) Read(context.Context, pgx.Tx, []string) (Values, error) {
	return Values{
		SubstrateEnabled: strconv.FormatBool(s.SubstrateEnabled),
		ReaperEnabled:    strconv.FormatBool(s.ReaperEnabled),
		DryRunOnly:       strconv.FormatBool(s.DryRunOnly),
	}, nil
}
