package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/soak"
)

// An hour passes, and then its figures turn out to be of a queue in which nothing died, or
// of a transaction that was open at another time.
func TestAShortSoakShowsWhatAnHourWould(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	page, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "performance.md"), page, 0o600))
	found := filepath.Join(folder, "found.json")

	require.NoError(t, run(t.Context(), &bytes.Buffer{}, []string{
		"-smoke", "-soak", "12s", "-json", found, "-docs", folder,
	}))

	r, err := report.Read(found)
	require.NoError(t, err)
	require.Contains(t, r.Soak.Environment, bed.Setting{Name: "autovacuum", Value: "on"})
	require.Len(t, r.Soak.Queues, 2)
	for _, q := range r.Soak.Queues {
		requireSense(t, q)
	}
	require.FileExists(t, filepath.Join(folder, "soak-size.svg"))
	require.FileExists(t, filepath.Join(folder, "soak-poll.svg"))
}

// requireSense checks what must be true of each soak.
func requireSense(t *testing.T, q soak.Queue) {
	t.Helper()
	require.Len(t, q.Samples, 60)
	var all soak.Sample
	for i, s := range q.Samples {
		require.Greater(t, s.Seconds, all.Seconds)
		require.Equal(t, i >= 20 && i < 40, s.Held, "sample %d", i)
		require.Positive(t, s.TableBytes)
		require.Positive(t, s.IndexBytes)
		require.GreaterOrEqual(t, s.WALBytes, int64(0))
		require.Equal(t, s.Reset+s.Moved, s.Overdue.Count)
		require.LessOrEqual(t, s.Overdue.Median, s.Overdue.P99)
		require.Zero(t, s.Failed)
		all.Seconds = s.Seconds
		all.WALBytes += s.WALBytes
		all.Updates += s.Updates
		all.Done += s.Done
		all.Reset += s.Reset
		all.IdlePoll.Count += s.IdlePoll.Count
		all.Claim.Count += s.Claim.Count
	}
	require.Positive(t, all.WALBytes)
	require.Positive(t, all.Updates)
	require.Positive(t, all.Done)
	require.Positive(t, all.Reset)
	require.Positive(t, all.IdlePoll.Count)
	require.Positive(t, all.Claim.Count)
}
