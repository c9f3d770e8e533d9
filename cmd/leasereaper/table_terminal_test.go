//go:build unix

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// A terminal's width would not be asked for.
func TestADryRunFitsItsTerminal(t *testing.T) {
	t.Parallel()

	pool := pgtest.New(t)
	execute(t, pool, `insert into job_queue (job_kind, state, lease_owner, lease_until)
		values (repeat('kind', 10), 'leased', repeat('owner', 10), now() - interval '1 minute')`)
	x := start(t, address(t, pool), "dry-run")
	screen := x.shows("1 stale lease", "reset")
	require.Contains(t, screen, "…")
	require.NotContains(t, screen, "OWNER")
	x.ends()
}
