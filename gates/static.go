package gates

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"
)

var _ Pipeliner = Static{}

// Static is a [Source] with fixed answers, for tests and for services whose
// configuration decides at start-up. Its zero value is closed at the first gate.
// All three keys are set, so DryRunOnly's zero value is an open third gate. There
// is no window, and the backoff base stays at its default.
type Static struct {
	SubstrateEnabled bool
	ReaperEnabled    bool
	DryRunOnly       bool
}

// Queue queues nothing and returns what Read does.
func (s Static) Queue(*pgx.Batch, []string, bool) func() (Values, error) {
	return func() (Values, error) { return s.Read(context.Background(), nil, nil) }
}

// Read returns the three fixed answers. It does not touch tx.
func (s Static) Read(context.Context, pgx.Tx, []string) (Values, error) {
	return Values{
		SubstrateEnabled: strconv.FormatBool(s.SubstrateEnabled),
		ReaperEnabled:    strconv.FormatBool(s.ReaperEnabled),
		DryRunOnly:       strconv.FormatBool(s.DryRunOnly),
	}, nil
}
