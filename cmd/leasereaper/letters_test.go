//go:build unix

package main

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// While somebody reads the question another job dies; the yes would send that back
// as well.
func TestAYesRedrivesWhatWasShownAlone(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	openGates(t, pool)
	spent(t, pool, "shown")
	applyOnce(t, pool)
	x := start(t, address(t, pool), "dead-letters", "redrive", "--all")
	x.shows("Send this job back to the queue? ")
	spent(t, pool, "later")
	applyOnce(t, pool)
	x.types("y\r")
	x.shows("Sent 1 job back to the queue.")
	x.ends()
	require.Equal(t, []string{"later dead_letter", "shown retry_waiting"}, states(t, pool))
}

func applyOnce(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	r, err := reaper.New(pool, reaper.Config{})
	require.NoError(t, err)
	_, err = r.Apply(t.Context(), "night-shift", 10)
	require.NoError(t, err)
}
