package fleet_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// An operator asks all tenants on the day on which some are broken. The broken ones must be
// named, in order, and must not hide the others.
func TestCallsReturnAnOutcomeForEachMember(t *testing.T) {
	t.Parallel()
	first, firstPool := openDB(t, "first")
	last, lastPool := openDB(t, "last")
	reapertest.Stale(t, firstPool, "kind", 2, 0, 5)
	reapertest.Stale(t, lastPool, "kind", 3, 4, 5)
	invalid := last
	invalid.Name, invalid.Config.Grace = "invalid", -1
	f := newFleet(t, fleet.Config{Members: listOf(
		first,
		fleet.Member{Name: "down", DB: &down{func(context.Context) (pgx.Tx, error) { return nil, errDown }}},
		fleet.Member{Name: "panics", DB: &down{func(context.Context) (pgx.Tx, error) { panic(errDown) }}},
		fleet.Member{Name: "no pool"}, fleet.Member{DB: firstPool}, invalid, last,
	)})

	dryRuns, err := f.DryRun(t.Context(), 1)
	require.NoError(t, err)
	require.Equal(t, 2, dryRuns[0].Result.StaleLeaseCount)
	require.Equal(t, 3, dryRuns[6].Result.StaleLeaseCount)
	requireOutcomes(t, dryRuns)
	reports, err := f.Verify(t.Context())
	require.NoError(t, err)
	require.Empty(t, reports[0].Result.Problems)
	requireOutcomes(t, reports)
	drains, err := f.Drain(t.Context(), reapertest.Actor, 1)
	require.NoError(t, err)
	require.Equal(t, 2, drains[0].Result.ResetCount)
	require.Equal(t, 3, drains[6].Result.DeadLetterCount)
	requireOutcomes(t, drains)
}

// requireOutcomes requires the outcomes of the members above.
func requireOutcomes[T any](t *testing.T, outcomes []fleet.Outcome[T]) {
	t.Helper()
	wanted := []struct {
		name string
		err  error
	}{
		{"first", nil}, {"down", errDown}, {"panics", errDown}, {"no pool", reaper.ErrNilDB},
		{"", fleet.ErrMemberName}, {"invalid", reaper.ErrNegative}, {"last", nil},
	}
	require.Len(t, outcomes, len(wanted))
	for i, want := range wanted {
		require.Equal(t, want.name, outcomes[i].Member)
		require.ErrorIs(t, outcomes[i].Err, want.err)
	}
}

// A drain that breaks in the middle has reaped jobs: the operator must see how many.
func TestADrainThatFailsHasWhatItCommitted(t *testing.T) {
	t.Parallel()
	member, pool := openDB(t, "tenant")
	reapertest.Stale(t, pool, "kind", 3, 0, 5)
	member.Config.OnApply = func(_ context.Context, tx pgx.Tx, _ *reaper.ApplyResult) error {
		if reapertest.States(t, tx)["leased"] == 0 {
			return errDown
		}
		return nil
	}
	outcomes, err := newFleet(t, fleet.Config{Members: listOf(member)}).Drain(t.Context(), reapertest.Actor, 1)
	require.NoError(t, err)
	require.ErrorIs(t, outcomes[0].Err, errDown)
	require.Equal(t, 2, outcomes[0].Result.ResetCount)
}

// 200 dry runs at once take every connection of a small server; 8 at once do not.
func TestCallsAskParallelMembersAtOnce(t *testing.T) {
	t.Parallel()
	for parallel, wanted := range map[int]int64{0: 8, 3: 3, 100: 20} {
		synctest.Test(t, func(t *testing.T) {
			var now, most atomic.Int64
			db := &down{func(context.Context) (pgx.Tx, error) {
				most.Store(max(most.Load(), now.Add(1)))
				<-time.After(time.Second)
				now.Add(-1)
				return nil, errDown
			}}
			var members []fleet.Member
			for i := range 20 {
				members = append(members, fleet.Member{Name: fmt.Sprint(i), DB: db})
			}
			outcomes, err := newFleet(t, fleet.Config{Members: listOf(members...), Parallel: parallel}).Verify(t.Context())
			require.NoError(t, err)
			require.Len(t, outcomes, 20)
			require.Equal(t, wanted, most.Load())
		})
	}
}

// An operator's deadline has passed: the call ends, and those that nobody asked are not taken
// for sound.
func TestMembersThatWereNotAskedHaveTheCause(t *testing.T) {
	t.Parallel()
	member, _ := openDB(t, "second")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := newFleet(t, fleet.Config{Parallel: 1, Members: listOf(
		fleet.Member{Name: "first", DB: &down{func(context.Context) (pgx.Tx, error) {
			cancel(reapertest.ErrEnd)
			return nil, errDown
		}}},
		member,
	)})
	outcomes, err := f.DryRun(ctx, 1)
	require.NoError(t, err)
	require.ErrorIs(t, outcomes[0].Err, errDown)
	require.ErrorIs(t, outcomes[1].Err, reapertest.ErrEnd)
}

// With a faulty list nobody knows whom to ask, which is not the same as nobody to ask.
func TestACallFailsOnlyWithTheList(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		members []fleet.Member
		err     error
		wanted  error
	}{
		"an error":                   {nil, errDown, errDown},
		"a name that is there twice": {[]fleet.Member{{Name: "a"}, {Name: "b"}, {Name: "a"}, {Name: "a"}}, nil, fleet.ErrDuplicateMember},
		"no members":                 {nil, nil, nil},
	} {
		f := newFleet(t, fleet.Config{Members: func(context.Context) ([]fleet.Member, error) { return test.members, test.err }})
		outcomes, err := f.Verify(t.Context())
		require.ErrorIs(t, err, test.wanted, name)
		require.Empty(t, outcomes, name)
		require.Equal(t, test.wanted == nil, outcomes != nil, name)
	}
}

// The outcomes are stored as JSON and read by other programs. No password belongs there.
func TestTheJSONOfAnOutcome(t *testing.T) {
	t.Parallel()
	sound := fleet.Outcome[reaper.Report]{Member: "a", Result: &reaper.Report{Problems: []reaper.Problem{}}}
	failed := fleet.Outcome[reaper.Report]{Member: "b", Err: errors.New(`no "b"`)}
	require.JSONEq(t, `{"member":"a","result":{"problems":[]}}`, reapertest.JSON(t, sound))
	require.JSONEq(t, `{"member":"b","error":"no \"b\""}`, reapertest.JSON(t, failed))
	for _, outcome := range []fleet.Outcome[reaper.Report]{sound, failed} {
		var read fleet.Outcome[reaper.Report]
		require.NoError(t, json.Unmarshal([]byte(reapertest.JSON(t, outcome)), &read))
		require.Equal(t, outcome, read)
	}
	require.Error(t, json.Unmarshal([]byte(`{"member":1}`), &sound))

	pool, err := pgxpool.New(t.Context(), "postgres://user:secret-word@/db?host=/no/such/folder&application_name=x")
	require.NoError(t, err)
	defer pool.Close()
	outcomes, err := newFleet(t, fleet.Config{Members: listOf(fleet.Member{Name: "c", DB: pool})}).DryRun(t.Context(), 1)
	require.NoError(t, err)
	text := reapertest.JSON(t, outcomes)
	require.Contains(t, text, "/no/such/folder")
	require.NotContains(t, strings.ToLower(text), "secret-word")
}
