package reaper_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/backoff"
	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/gates"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// A list of kinds that a filter left empty must not reap every kind, and a grace
// that was meant for seconds must not be none.
func TestNewRefusesWhatWouldMeanTheOpposite(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	tests := map[string]struct {
		cfg  reaper.Config
		want error // nil: taken
	}{
		"no kinds":                        {reaper.Config{Kinds: []string{}}, reaper.ErrKind},
		"no kinds, of a list that had":    {reaper.Config{Kinds: []string{"a"}[:0]}, reaper.ErrKind},
		"no kinds in a queue without any": {reaper.Config{Kinds: []string{}, Queue: reaper.Table{Columns: reaper.Columns{JobKind: reaper.None}}}, reaper.ErrKind},
		"no exceptions":                   {reaper.Config{ExceptKinds: []string{}}, nil},
		"no graces":                       {reaper.Config{KindGrace: map[string]time.Duration{}}, nil},
		"half a microsecond":              {reaper.Config{Grace: 500 * time.Nanosecond}, reaper.ErrGrace},
		"a nanosecond":                    {reaper.Config{Grace: 1}, reaper.ErrGrace},
		"less than one by a nanosecond":   {reaper.Config{Grace: 999}, reaper.ErrGrace},
		"a microsecond":                   {reaper.Config{Grace: time.Microsecond}, nil},
		"a third of a second":             {reaper.Config{Grace: time.Second / 3}, nil},
		"the longest":                     {reaper.Config{Grace: math.MaxInt64}, nil},
		"half of one for a kind":          {reaper.Config{KindGrace: map[string]time.Duration{"a": 500}}, reaper.ErrGrace},
		"none for a kind":                 {reaper.Config{Grace: time.Hour, KindGrace: map[string]time.Duration{"a": 0}}, nil},
		"a negative lock timeout":         {reaper.Config{LockTimeout: -1}, reaper.ErrNegative},
		"the longest lock timeout":        {reaper.Config{LockTimeout: math.MaxInt32 * time.Millisecond}, nil},
		"a longer one":                    {reaper.Config{LockTimeout: math.MaxInt32*time.Millisecond + 1}, reaper.ErrLockTimeout},
		"one for ever":                    {reaper.Config{LockTimeout: math.MaxInt64}, reaper.ErrLockTimeout},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := reaper.New(pool, test.cfg)
			require.ErrorIs(t, err, test.want)
			require.Equal(t, test.want == nil, r != nil)
			if err != nil {
				require.Len(t, reapertest.Flatten(err), 1)
			}
		})
	}
}

// A timeout that is rounded down to 0 is no timeout at all to PostgreSQL.
func TestLockTimeoutIsRoundedUpToMilliseconds(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	tests := map[string]struct {
		timeout time.Duration
		want    string
	}{
		"unset":                 {0, "1000"},
		"a nanosecond":          {1, "1"},
		"a millisecond":         {time.Millisecond, "1"},
		"a nanosecond more":     {time.Millisecond + 1, "2"},
		"a minute and a half":   {90 * time.Second, "90000"},
		"the longest":           {math.MaxInt32 * time.Millisecond, "2147483647"},
		"a little less than it": {math.MaxInt32*time.Millisecond - 1, "2147483647"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := reaper.Config{LockTimeout: test.timeout}.LockTimeoutMillis()
			require.Equal(t, test.want, got)
			_, err := pool.Exec(t.Context(), `select set_config('lock_timeout', $1, true)`, got)
			require.NoError(t, err)
		})
	}
}

// A part that was never made, or whose check crashes, must be met at the start as
// an error, together with what else is wrong.
func TestNewReportsPartsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	pool := pgtest.New(t)

	tests := map[string]struct {
		cfg    reaper.Config
		faults []error // in the order of Config's parts
	}{
		"nil pointers": {
			reaper.Config{Gates: (*gates.Table)(nil), DeadLetter: (*deadletter.Table)(nil), Backoff: (*backoff.Exponential)(nil)},
			[]error{reaper.ErrNilPart, reaper.ErrNilPart, reaper.ErrNilPart},
		},
		"nil pointers to what has no check": {
			reaper.Config{Gates: (*gates.Static)(nil), DeadLetter: (*uncheckedMover)(nil), Backoff: (*uncheckedPolicy)(nil)},
			[]error{reaper.ErrNilPart, reaper.ErrNilPart, reaper.ErrNilPart},
		},
		"nil functions": {
			reaper.Config{Gates: gates.SourceFunc(nil), DeadLetter: deadletter.MoverFunc(nil), Backoff: policyFunc(nil)},
			[]error{reaper.ErrNilPart, reaper.ErrNilPart, reaper.ErrNilPart},
		},
		"checks that panic": {
			reaper.Config{Gates: struct{ *gates.Table }{}, DeadLetter: struct{ *deadletter.Function }{}, Backoff: panicking{errCheck}},
			[]error{nil, nil, errCheck},
		},
		"one of them, and others": {
			reaper.Config{Kinds: []string{}, Grace: 1, LockTimeout: -1, Gates: (*gates.Table)(nil), Backoff: panicking{"no error"}},
			[]error{reaper.ErrGrace, reaper.ErrNegative, reaper.ErrKind, reaper.ErrNilPart, nil},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := reaper.New(pool, test.cfg)
			require.Nil(t, r)
			faults := reapertest.Flatten(err)
			require.Len(t, faults, len(test.faults))
			for i, want := range test.faults {
				require.Error(t, faults[i])
				if want != nil {
					require.ErrorIs(t, faults[i], want)
				}
			}
		})
	}
}

var errCheck = errors.New("a check's own")

type uncheckedMover struct{}

func (uncheckedMover) Move(context.Context, pgx.Tx, deadletter.Batch) ([]deadletter.Receipt, error) {
	return nil, nil
}

type uncheckedPolicy struct{}

func (uncheckedPolicy) DelaySec(int, int64) int64 { return 0 }

type policyFunc func(int, int64) int64

func (f policyFunc) DelaySec(attempts int, base int64) int64 { return f(attempts, base) }

// panicking is a policy whose check panics with a value.
type panicking struct{ with any }

func (panicking) DelaySec(int, int64) int64 { return 0 }
func (p panicking) Validate() error         { panic(p.with) }
