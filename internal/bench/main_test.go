package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// A benchmark that broke is found out on the day when somebody needs its figures.
func TestSmokeRunsEveryScenario(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	page, err := os.ReadFile("../../docs/performance.md")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "performance.md"), page, 0o600))
	found := filepath.Join(folder, "found.json")
	var out bytes.Buffer

	require.NoError(t, run(t.Context(), &out, []string{"-smoke", "-json", found, "-docs", folder}))

	text, err := os.ReadFile(found)
	require.NoError(t, err)
	var r report.Report
	require.NoError(t, json.Unmarshal(text, &r))
	for _, scenario := range suite.All() {
		require.True(t, measured(r.Result, scenario.Name), scenario.Name)
	}
	for _, finding := range r.Result.Findings {
		if finding.NotRun == "" {
			require.GreaterOrEqual(t, finding.Value.High, finding.Value.Low, finding.What)
		}
	}
	require.FileExists(t, filepath.Join(folder, "throughput-by-batch.svg"))
	require.FileExists(t, filepath.Join(folder, "latency-by-backlog.svg"))
}

// measured reports whether a scenario has left anything.
func measured(result suite.Result, name string) bool {
	for _, finding := range result.Findings {
		if finding.Scenario == name {
			return true
		}
	}
	for _, measure := range result.Measures {
		if measure.Scenario == name {
			return true
		}
	}
	for _, series := range result.Series {
		if series.Scenario == name {
			return true
		}
	}
	return false
}

// Half an hour of measuring for nothing is the price of a flag that is taken
// lightly.
func TestFlagsAreChecked(t *testing.T) {
	t.Parallel()

	for name, arguments := range map[string][]string{
		"an expression that is none": {"-run", "("},
		"a flag that is none":        {"-fast"},
		"a file that is not there":   {"-from", filepath.Join(t.TempDir(), "none.json")},
		"a soak without a third":     {"-soak", "2s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, run(t.Context(), &bytes.Buffer{}, arguments))
		})
	}
}
