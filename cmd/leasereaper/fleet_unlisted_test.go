package main

import (
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/reaper"
	"github.com/lease-governance/leasereaper/reaper/fleet"
)

// A coordinator that does not answer is one failed line of the fleet. Otherwise nothing would
// be shown of the other databases.
func TestCoordinatorThatDoesNotAnswerIsOneMember(t *testing.T) {
	t.Parallel()
	pool, err := pgxpool.New(t.Context(), "postgres://127.0.0.1:1/app?connect_timeout=1")
	require.NoError(t, err)
	defer pool.Close()
	one := &tool{pool: pool}
	one.queue.name, one.queue.citus = "orders", true
	list, closeList, err := one.members(false)
	require.NoError(t, err)
	defer closeList()
	members, err := list(t.Context())
	require.NoError(t, err)
	require.Len(t, members, 1)
	require.Equal(t, "orders", members[0].Name)
	_, err = members[0].DB.Begin(t.Context())
	require.ErrorContains(t, err, "connect")
}

// A drain that fails halfway shows what it has committed. Otherwise an operator would take the
// database for untouched.
func TestFleetLineOfAFailedDrainShowsWhatWasCommitted(t *testing.T) {
	t.Parallel()
	result := &reaper.DrainResult{}
	result.ResetCount = 300
	outcome := fleet.Outcome[reaper.DrainResult]{Member: "orders", Result: result, Err: errors.New("it broke")}
	line := outcomeRow(outcome, 1, func(r *reaper.DrainResult) []string { return []string{strconv.Itoa(r.ResetCount)} })
	require.Equal(t, "300", line[1])
	require.Contains(t, line[2], "it broke")
}
