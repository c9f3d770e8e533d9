package fleet_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// A service with two faults in its configuration must not need two starts to show them.
func TestNewReportsEveryFaultAtOnce(t *testing.T) {
	t.Parallel()

	_, err := fleet.New(fleet.Config{Parallel: -1})
	require.ErrorIs(t, err, fleet.ErrNoMembers)
	require.ErrorIs(t, err, fleet.ErrNegative)
	require.Len(t, reapertest.Flatten(err), 2)
}

// A directory of members that is down must not keep a service from starting.
func TestNewDoesNotAskForTheMembers(t *testing.T) {
	t.Parallel()

	_, err := fleet.New(fleet.Config{Members: func(context.Context) ([]fleet.Member, error) { panic("asked") }})
	require.NoError(t, err)
}

// A typing mistake in an actor or an interval must end the start of a service. It would
// otherwise be a line in the log for each of 200 members.
func TestRunReportsItsArgumentsAtOnce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, fleet.Config{Members: func(context.Context) ([]fleet.Member, error) { panic("asked") }})

	err := f.Run(t.Context(), " ", reaper.RunConfig{Batch: -1, MinInterval: 2, Interval: 1})
	require.ErrorIs(t, err, reaper.ErrActor)
	require.ErrorIs(t, err, reaper.ErrNegative)
	require.ErrorIs(t, err, reaper.ErrInvalidIntervals)
}
