package reaper_test

import (
	"context"
	"os"
	command "os/exec"
	"testing"
	"time"
	_ "time/tzdata" // the machine may have no zones

	"github.com/lease-governance/leasereaper/internal/reapertest"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/deadletter"
	"github.com/lease-governance/leasereaper/internal/pgtest"
	"github.com/lease-governance/leasereaper/reaper"
)

// farZone is where it is tomorrow already.
const (
	farZone       = "Pacific/Kiritimati"
	farZoneOffset = 14 * 60 * 60
)

// A service, a database and the person who reads the result are in three zones.
// Were a time in any but UTC, someone would take a lease for stale that is not. The
// same instant gives the same result in each zone, to the letter.
func TestResultsAreInUTCWhateverTheZone(t *testing.T) {
	t.Parallel()
	if os.Getenv("TZ") == farZone {
		_, offset := time.Now().Zone()
		require.Equal(t, farZoneOffset, offset, "the process is in the zone that it was told")
	}
	pool := reapertest.WithOracle(t, pgtest.New(t))
	tx := reapertest.Begin(t, pool) // now() stands still
	reapertest.OpenGates(t, tx)
	reapertest.Stale(t, tx, "retryable", 3, 0, 5)
	reapertest.Stale(t, tx, "exhausted", 2, 4, 5)
	reapertest.Exec(t, tx, `insert into job_queue (job_kind, state, lease_until) values
		('old', 'leased', '0044-03-15 12:00:00.000001+00 BC'), ('older', 'leased', '-infinity'),
		('local mean time', 'leased', '1871-06-01 00:00:00+00'), ('the leap', 'leased', '2016-12-31 23:59:60+00')`)

	for with, mover := range reapertest.Movers {
		want := inZone(t, tx, "UTC", mover)
		require.Len(t, want, 2)
		for _, zone := range []string{farZone, "Pacific/Pago_Pago", "America/St_Johns", "Africa/Monrovia", "Asia/Kathmandu", "<far>-15:59"} {
			require.Equal(t, want, inZone(t, tx, zone, mover), "%s, %s", zone, with)
		}
	}
}

// inZone is what a dry run and an apply show to a session in a zone, as JSON, and
// checks what is not in the JSON. All of it is undone.
func inZone(t *testing.T, tx pgx.Tx, zone string, mover deadletter.Mover) []any {
	t.Helper()
	savepoint, err := tx.Begin(t.Context())
	require.NoError(t, err)
	defer savepoint.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // the transaction's end shows it
	reapertest.Exec(t, savepoint, `select set_config('timezone', $1, true)`, zone)
	r := reapertest.New(t, savepoint, reaper.Config{DeadLetter: mover})

	dryRun, err := r.DryRun(t.Context(), 100)
	require.NoError(t, err)
	result := reapertest.Apply(t, r, 100)

	require.Equal(t, time.UTC, dryRun.EvaluatedAt.Location())
	require.Len(t, result.Actions, 9)
	for i, action := range result.Actions {
		job := dryRun.Jobs[i]
		require.Equal(t, job.JobID, action.JobID)
		require.Equal(t, job.LeaseUntil, action.LeaseUntil)
		require.Equal(t, time.UTC, job.LeaseUntil.Location())
		if action.Action == reaper.ActionReset {
			require.Equal(t, time.UTC, action.ScheduledAt.Location())
			require.True(t, reapertest.One[bool](t, savepoint, `select scheduled_at = $1::timestamptz and scheduled_at > now()
				from job_queue where job_id = $2::text::uuid`, action.ScheduledAt, action.JobID))
		}
	}
	require.True(t, reapertest.One[bool](t, savepoint, `select bool_and((job ->> 'lease_until')::timestamptz between now() - interval '3 s' and now())
		from job_dead_letter`), "the dead letters hold the same instants")
	return []any{normal(t, reapertest.JSON(t, dryRun)), normal(t, reapertest.JSON(t, result))}
}

// The zone of the process is another thing than that of the session: it is where
// Go's time.Local comes from. It is set before a process starts, so this runs the
// test in another one.
func TestResultsAreInUTCWhereverTheProcessIs(t *testing.T) {
	t.Parallel()
	binary, err := os.Executable()
	require.NoError(t, err)
	again := command.CommandContext(t.Context(), binary, "-test.v", "-test.run=^TestResultsAreInUTCWhateverTheZone$")
	again.Env = append(os.Environ(), "TZ="+farZone)

	output, err := again.CombinedOutput()

	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "--- PASS: TestResultsAreInUTCWhateverTheZone ")
}
