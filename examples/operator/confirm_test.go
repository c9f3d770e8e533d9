//go:build unix

package main

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// While somebody reads the question the queue goes on; the yes would be for more
// than was shown.
func TestAYesAppliesWhatWasShownAlone(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	openGates(t, pool)
	spent(t, pool, "shown")
	x := start(t, address(t, pool), "apply")
	x.shows("shown", "Reap this job? ")
	spent(t, pool, "later")
	x.types("y\r")
	x.shows("Reset 0, moved 1 to the dead letters.")
	x.ends()
	require.Equal(t, []string{"later leased", "shown dead_letter"}, states(t, pool))
}

// Ctrl-C at the question would hang, or count as an answer.
func TestCtrlCAtAQuestionIsNoYes(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	openGates(t, pool)
	spent(t, pool, "shown")
	x := start(t, address(t, pool), "apply")
	x.shows("Reap this job? ")
	x.types("\x03")
	x.shows("operator: interrupted")
	require.Equal(t, []string{"shown leased"}, states(t, pool))
}

// spent leases a job whose next reap is its last.
func spent(t *testing.T, pool *pgxpool.Pool, kind string) {
	t.Helper()
	execute(t, pool, `insert into job_queue (job_kind, state, attempts, lease_owner, lease_until)
		values ($1, 'leased', 4, 'w', now() - interval '1 minute')`, kind)
}

func states(t *testing.T, pool *pgxpool.Pool) []string {
	t.Helper()
	found, err := collect[string](t.Context(), pool, `select job_kind || ' ' || state from job_queue order by 1`)
	require.NoError(t, err)
	return found
}
