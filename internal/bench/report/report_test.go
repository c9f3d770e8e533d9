package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/stat"
	"github.com/lease-governance/leasereaper/internal/bench/suite"
)

// sample is a report with one of everything.
func sample() report.Report {
	return report.Report{
		Environment: []bed.Setting{{Name: "fsync", Value: "on"}},
		Result: suite.Result{
			Findings: []suite.Finding{
				{
					Scenario: "apply-scattered", What: "speed", Unit: "x",
					Value: stat.Spread{Low: 1.5, Median: 1.75, High: 2}, Goal: &suite.Goal{Bound: 1.8},
				},
				{Scenario: "apply-idle", What: "exchanges", Value: stat.Exactly(2), Goal: &suite.Goal{Most: true, Bound: 2}},
				{Scenario: "peer-pg-boss", What: "speed", NotRun: "no node", Goal: &suite.Goal{Bound: 3}},
			},
			Measures: []suite.Measure{
				{Scenario: "apply-scattered", Contender: "library", Value: stat.Spread{Low: 9, Median: 54321.4, High: 60000}, Unit: "rows/s"},
				{Scenario: "anatomy", Contender: "reaper.claim", Value: stat.Exactly(3), Unit: "ms"},
				{Scenario: "anatomy", Contender: "commit", Value: stat.Exactly(1), Unit: "ms"},
			},
			Series: []suite.Series{{
				Scenario: "backlogs", Contender: "library", Points: []suite.Point{{Size: 10, Value: stat.Exactly(1)}},
			}},
		},
	}
}

const page = `# Performance
By hand.
<!-- bench environment -->
old
<!-- bench end -->
<!-- bench goals -->
<!-- bench end -->
<!-- bench figures -->
<!-- bench end -->
<!-- bench anatomy -->
<!-- bench end -->
Between.
<!-- bench anatomy-idle -->
what an earlier run has found
<!-- bench end -->
<!-- bench batch-sizes -->
<!-- bench end -->
<!-- bench backlogs -->
<!-- bench end -->
<!-- bench soak -->
what an earlier soak has found
<!-- bench end -->
<!-- bench soak-environment -->
<!-- bench end -->
The end.
`

// What people wrote on the page is theirs, and what a run did not measure is not
// gone because of it.
func TestDocsReplacesTheGeneratedPartsAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "performance.md")
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))

	require.NoError(t, sample().Docs(folder))
	require.NoError(t, sample().Docs(folder)) // and again

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, `# Performance
By hand.
<!-- bench environment -->
| what | here |
| --- | --- |
| fsync | on |
<!-- bench end -->
<!-- bench goals -->
| scenario | what | median | middle half | goal |  |
| --- | --- | --- | --- | --- | --- |
| apply, limit 1000, the stale rows spread over the table | speed | 1.75x | 1.50 - 2 | at least 1.8x | **red** |
| apply, the gates open, nothing stale | exchanges | 2 |  | at most 2 | reached |
| pg-boss's supervise on its own tables, and a drain by the library | speed | - |  | at least 3 | not run |
<!-- bench end -->
<!-- bench figures -->
| scenario | contender | median | middle half |
| --- | --- | --- | --- |
| apply, limit 1000, the stale rows spread over the table | library | 54,321 rows/s | 9 - 60,000 |
<!-- bench end -->
<!-- bench anatomy -->
| step | median | share |
| --- | --- | --- |
| reaper.claim | 3 ms | 75% |
| commit | 1 ms | 25% |
<!-- bench end -->
Between.
<!-- bench anatomy-idle -->
what an earlier run has found
<!-- bench end -->
<!-- bench batch-sizes -->
<!-- bench end -->
<!-- bench backlogs -->
| stale leases | library |
| --- | --- |
| 10 | 1 ms |
<!-- bench end -->
<!-- bench soak -->
what an earlier soak has found
<!-- bench end -->
<!-- bench soak-environment -->
<!-- bench end -->
The end.
`, string(text))
	require.FileExists(t, filepath.Join(folder, "latency-by-backlog.svg"))
	require.NoFileExists(t, filepath.Join(folder, "throughput-by-batch.svg"))
}

// A page whose marks were lost would be left as it is, and look up to date.
func TestDocsWantsItsMarks(t *testing.T) {
	t.Parallel()

	for name, text := range map[string]string{
		"no opening": "# Performance\n",
		"no closing": "<!-- bench environment -->\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := filepath.Join(folder, "performance.md")
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))

			require.Error(t, sample().Docs(folder))

			after, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, text, string(after))
		})
	}
}

// Figures are measured for half an hour, and shown again without that.
func TestAReportIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "found.json")
	require.NoError(t, sample().Write(path))

	read, err := report.Read(path)

	require.NoError(t, err)
	require.Equal(t, sample(), read)
}

// A red goal that does not meet the eye is as good as hidden.
func TestPrintShowsWhatIsRed(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer

	require.NoError(t, sample().Print(&out))

	require.Regexp(t, `apply-scattered +speed +1\.75x +1\.50 - 2 +at least 1\.8x +RED\n`, out.String())
	require.Regexp(t, `apply-idle +exchanges +2 +at most 2 +reached\n`, out.String())
	require.Contains(t, out.String(), "peer-pg-boss: speed: no node\n")
}
