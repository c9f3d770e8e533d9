package gates_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/gates"
)

// A service without a settings table decides at start-up. A field that it does not set
// must not open the gates.
func TestStaticGivesItsThreeAnswers(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		static gates.Static
		reason string
	}{
		"its zero value":             {gates.Static{}, "queue.job_substrate.enabled=false"},
		"without the substrate":      {gates.Static{ReaperEnabled: true}, "queue.job_substrate.enabled=false"},
		"without the reaper":         {gates.Static{SubstrateEnabled: true}, "queue.lease.reaper_enabled=false"},
		"for dry runs":               {gates.Static{SubstrateEnabled: true, ReaperEnabled: true, DryRunOnly: true}, "queue.lease.reaper_dry_run_only=true"},
		"with all gates open":        {gates.Static{SubstrateEnabled: true, ReaperEnabled: true}, ""},
		"with all set, first closed": {gates.Static{ReaperEnabled: true, DryRunOnly: true}, "queue.job_substrate.enabled=false"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values, err := test.static.Read(t.Context(), nil, gates.Keys())
			require.NoError(t, err)
			require.Len(t, values, 3, "all three keys are set")

			reason, err := values.Refusal(time.Now())
			require.NoError(t, err)
			require.Equal(t, test.reason, reason)
			base, err := values.BackoffBase()
			require.NoError(t, err)
			require.EqualValues(t, 10, base)
		})
	}
}

type key struct{}

// A feature-flag service must get only the reaper's keys, and the caller's context. Its
// values are used unchanged.
func TestSourceFuncPassesEverythingThrough(t *testing.T) {
	t.Parallel()
	ctx := context.WithValue(t.Context(), key{}, "the caller's")
	outage := errors.New("the flag service is down")

	tests := map[string]struct {
		values gates.Values
		err    error
	}{
		"an answer":           {gates.Values{substrate: "maybe"}, nil},
		"no answer":           {nil, nil},
		"an error":            {nil, outage},
		"an error that wraps": {nil, fmt.Errorf("read flags: %w", outage)},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var asked []string
			var seen any
			source := gates.SourceFunc(func(ctx context.Context, _ pgx.Tx, keys []string) (gates.Values, error) {
				asked, seen = keys, ctx.Value(key{})
				return test.values, test.err
			})
			values, err := source.Read(ctx, nil, gates.Keys())
			require.ErrorIs(t, err, test.err)
			require.Equal(t, test.values, values)
			require.Equal(t, gates.Keys(), asked)
			require.Equal(t, "the caller's", seen)
		})
	}
}

// A panic in a flag library must not crash the worker service, and must not open a gate.
func TestSourceFuncTurnsAPanicIntoAnError(t *testing.T) {
	t.Parallel()

	tests := map[string]struct{ panics any }{
		"with a text":   {"boom"},
		"with an error": {errors.New("boom")},
		"with nil":      {nil},
		"with a value":  {42},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := gates.SourceFunc(func(context.Context, pgx.Tx, []string) (values gates.Values, err error) {
				values = gates.Values{substrate: "true", enabled: "true", dryRun: "false"}
				defer func() { panic(test.panics) }()
				return values, nil
			})
			values, err := source.Read(t.Context(), nil, gates.Keys())
			require.Error(t, err)
			require.Nil(t, values)
		})
	}

	values, err := gates.SourceFunc(nil).Read(t.Context(), nil, gates.Keys())
	require.Error(t, err, "a nil function panics too")
	require.Nil(t, values)
}

func ExampleStatic() {
	source := gates.Static{SubstrateEnabled: true, ReaperEnabled: true}
	values, err := source.Read(context.Background(), nil, gates.Keys())
	if err != nil {
		fmt.Println(err)
		return
	}
	reason, err := values.Refusal(time.Now())
	fmt.Printf("%q %v\n", reason, err)
	// Output: "" <nil>
}

func ExampleSourceFunc() {
	flags := map[string]string{gates.SubstrateEnabled: "true", gates.ReaperEnabled: "true"}
	source := gates.SourceFunc(func(_ context.Context, _ pgx.Tx, keys []string) (gates.Values, error) {
		values := gates.Values{}
		for _, key := range keys {
			if value, ok := flags[key]; ok {
				values[key] = value
			}
		}
		return values, nil
	})
	values, err := source.Read(context.Background(), nil, gates.Keys())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(values.Refusal(time.Now()))
	// Output: queue.lease.reaper_dry_run_only=true <nil>
}
