package report_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
	"github.com/lease-governance/leasereaper/internal/bench/report"
	"github.com/lease-governance/leasereaper/internal/bench/soak"
)

// soaked is a report of a soak of three minutes. In its first nothing was reaped.
func soaked() report.Report {
	const mib = 1 << 20
	var q soak.Queue
	q.Name = "reference"
	for n := range 3 {
		overdue := soak.Times{Count: n, Median: 0.5, P99: 0.9}
		q.Samples = append(q.Samples, soak.Sample{
			Seconds: 60 * float64(n+1), Held: n == 1,
			TableBytes: int64(n+1) * 10 * mib, IndexBytes: 2 * mib, DeadRows: int64(1000 * n), WALBytes: 6 * mib,
			Vacuums: 1, Updates: 100, HotUpdates: 25,
			IdlePoll: soak.Times{Count: 1, Median: 0.001, P99: 0.002}, Overdue: overdue,
			Claim: soak.Times{Count: 1, Median: 0.003, P99: 0.004}, Done: 2400, Reset: n, Rate: 40,
		})
	}
	return report.Report{Soak: &soak.Result{
		Length: 3 * time.Minute, Environment: []bed.Setting{{Name: "autovacuum", Value: "on"}}, Queues: []soak.Queue{q},
	}}
}

// An hour is over, and its figures are in no column, or in that of another third. Or they
// replaced the figures of the benchmarks, which were not run.
func TestDocsOfASoakReplaceItsPartsAlone(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "performance.md")
	require.NoError(t, os.WriteFile(path, []byte(page), 0o600))

	require.NoError(t, soaked().Docs(folder))

	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, strings.Replace(strings.Replace(page, "what an earlier soak has found\n", `|  | reference: before | reference: open | reference: after |
| --- | --- | --- | --- |
| table, at the end | 10 MiB | 20 MiB | 30 MiB |
| indexes, at the end | 2 MiB | 2 MiB | 2 MiB |
| dead rows, at most | 0 | 1,000 | 2,000 |
| runs of autovacuum | 1 | 1 | 1 |
| HOT updates, of all | 25.0% | 25.0% | 25.0% |
| WAL a minute | 6 MiB | 6 MiB | 6 MiB |
| idle poll, median | 1 ms | 1 ms | 1 ms |
| idle poll, 99th of the worst minute | 2 ms | 2 ms | 2 ms |
| overdue at the reap, median |  | 500 ms | 500 ms |
| overdue at the reap, 99th of the worst minute |  | 900 ms | 900 ms |
| a worker's claim, median | 3 ms | 3 ms | 3 ms |
| a worker's claim, 99th of the worst minute | 4 ms | 4 ms | 4 ms |
| jobs done | 40 a second | 40 a second | 40 a second |
| jobs reaped | 0 a second | 0.017 a second | 0.033 a second |
| passes of loops that failed | 0 | 0 | 0 |
`, 1), "<!-- bench soak-environment -->\n", `<!-- bench soak-environment -->
| what | here |
| --- | --- |
| autovacuum | on |
`, 1), string(text))
	svg, err := os.ReadFile(filepath.Join(folder, "soak-size.svg"))
	require.NoError(t, err)
	require.Contains(t, string(svg), "an old transaction is open")
	require.FileExists(t, filepath.Join(folder, "soak-poll.svg"))
}

// Who looks at the terminal sees each minute.
func TestPrintShowsEachSampleOfASoak(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer

	require.NoError(t, soaked().Print(&out))

	require.Regexp(t, `\n1 +10 MiB +2 MiB +0 `, out.String())
	require.Regexp(t, `\n2 +open +20 MiB +2 MiB +1,000 +1 +6 MiB +1 ms +2 ms +500 ms +900 ms +3 ms +4 ms +40 +1\n`, out.String())
}
