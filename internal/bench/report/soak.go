package report

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/lease-governance/leasereaper/internal/bench/plot"
	"github.com/lease-governance/leasereaper/internal/bench/soak"
)

const mebi = 1 << 20

// soakFigures are the lines of the table of a soak.
var soakFigures = []struct {
	name string
	of   func(soak.Phase) string
}{
	{"table, at the end", func(p soak.Phase) string { return bytesOf(p.Last().TableBytes) }},
	{"indexes, at the end", func(p soak.Phase) string { return bytesOf(p.Last().IndexBytes) }},
	{"dead rows, at most", func(p soak.Phase) string {
		return thousands(p.Most(func(s soak.Sample) int64 { return s.DeadRows }))
	}},
	{"runs of autovacuum", func(p soak.Phase) string {
		return thousands(p.Sum(func(s soak.Sample) int64 { return s.Vacuums }))
	}},
	{"HOT updates, of all", hotShare},
	{"WAL a minute", func(p soak.Phase) string {
		return bytesOf(int64(60 * p.PerSecond(func(s soak.Sample) int64 { return s.WALBytes })))
	}},
	{"idle poll, median", func(p soak.Phase) string { return median(idlePoll(p)) }},
	{"idle poll, 99th of the worst minute", func(p soak.Phase) string { return p99(idlePoll(p)) }},
	{"overdue at the reap, median", func(p soak.Phase) string { return median(overdue(p)) }},
	{"overdue at the reap, 99th of the worst minute", func(p soak.Phase) string { return p99(overdue(p)) }},
	{"a worker's claim, median", func(p soak.Phase) string { return median(claim(p)) }},
	{"a worker's claim, 99th of the worst minute", func(p soak.Phase) string { return p99(claim(p)) }},
	{"jobs done", func(p soak.Phase) string {
		return with("a second", figure(p.PerSecond(func(s soak.Sample) int64 { return int64(s.Done) })))
	}},
	{"jobs reaped", func(p soak.Phase) string {
		return with("a second", figure(p.PerSecond(func(s soak.Sample) int64 { return int64(s.Reset + s.Moved) })))
	}},
	{"passes of loops that failed", func(p soak.Phase) string {
		return thousands(p.Sum(func(s soak.Sample) int64 { return int64(s.Failed) }))
	}},
}

func idlePoll(p soak.Phase) soak.Times {
	return p.Times(func(s soak.Sample) soak.Times { return s.IdlePoll })
}

func overdue(p soak.Phase) soak.Times {
	return p.Times(func(s soak.Sample) soak.Times { return s.Overdue })
}

func claim(p soak.Phase) soak.Times {
	return p.Times(func(s soak.Sample) soak.Times { return s.Claim })
}

func hotShare(p soak.Phase) string {
	all := p.Sum(func(s soak.Sample) int64 { return s.Updates })
	hot := p.Sum(func(s soak.Sample) int64 { return s.HotUpdates })
	return fmt.Sprintf("%.1f%%", 100*float64(hot)/float64(max(1, all)))
}

func bytesOf(n int64) string { return with("MiB", figure(float64(n)/mebi)) }

func median(t soak.Times) string { return millis(t, t.Median) }
func p99(t soak.Times) string    { return millis(t, t.P99) }

// millis writes a time, if there was any.
func millis(t soak.Times, seconds float64) string {
	if t.Count == 0 {
		return ""
	}
	return with("ms", figure(1000*seconds))
}

// soakTable has a line for each figure, and a column for each third of each queue.
func soakTable(r *soak.Result) (rows [][]string, titles []string) {
	titles = []string{""}
	for _, f := range soakFigures {
		rows = append(rows, []string{f.name})
	}
	for _, q := range r.Queues {
		for _, phase := range q.Phases() {
			titles = append(titles, q.Name+": "+phase.Name)
			for i, f := range soakFigures {
				rows[i] = append(rows[i], f.of(phase))
			}
		}
	}
	return rows, titles
}

// soakParts are the generated parts of the page that are about the soak.
func (r Report) soakParts() []part {
	if r.Soak == nil {
		return []part{{name: "soak"}, {name: "soak-environment"}}
	}
	rows, titles := soakTable(r.Soak)
	var settings [][]string
	for _, setting := range r.Soak.Environment {
		settings = append(settings, []string{setting.Name, setting.Value})
	}
	return []part{
		{"soak", table(rows, titles...)},
		{"soak-environment", table(settings, "what", "here")},
	}
}

// printSoak writes the table, and then every sample.
func printSoak(out io.Writer, r *soak.Result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, setting := range r.Environment {
		row(w, setting.Name, setting.Value)
	}
	row(w)
	rows, titles := soakTable(r)
	for _, cells := range append([][]string{titles}, rows...) {
		row(w, cells...)
	}
	for _, q := range r.Queues {
		row(w)
		row(w, q.Name)
		row(w, "minute", "old", "table", "indexes", "dead", "vacuums", "WAL", "idle poll", "99th", "overdue", "99th",
			"claim", "99th", "done/s", "reaped")
		for _, s := range q.Samples {
			row(w, sampleCells(s)...)
		}
	}
	return w.Flush()
}

func sampleCells(s soak.Sample) []string {
	held := ""
	if s.Held {
		held = "open"
	}
	return []string{
		figure(s.Seconds / 60), held, bytesOf(s.TableBytes), bytesOf(s.IndexBytes), thousands(s.DeadRows),
		thousands(s.Vacuums), bytesOf(s.WALBytes), median(s.IdlePoll), p99(s.IdlePoll),
		median(s.Overdue), p99(s.Overdue), median(s.Claim), p99(s.Claim),
		figure(s.Rate), thousands(int64(s.Reset + s.Moved)),
	}
}

// soakPlots are drawn of a soak, over time. A sample whose value is 0 is left out.
var soakPlots = []struct {
	file, title, y string
	of             func(soak.Sample) float64
}{
	{
		"soak-size.svg", "Size of the queue during the soak", "MiB, table and indexes",
		func(s soak.Sample) float64 { return float64(s.TableBytes+s.IndexBytes) / mebi },
	},
	{
		"soak-poll.svg", "Slowest idle polls during the soak", "milliseconds, 99th percentile",
		func(s soak.Sample) float64 { return 1000 * s.IdlePoll.P99 },
	},
}

// plotSoak writes the plots of a soak into a folder.
func plotSoak(folder string, r *soak.Result) error {
	from, to := r.Queues[0].Held()
	for _, p := range soakPlots {
		c := plot.Chart{
			Title: p.title, X: "minutes", Y: p.y, Linear: true,
			Band: &plot.Band{From: from / 60, To: to / 60, Name: "an old transaction is open"},
		}
		for _, q := range r.Queues {
			line := plot.Line{Name: q.Name}
			for _, s := range q.Samples {
				if y := p.of(s); y > 0 {
					line.Points = append(line.Points, plot.Point{X: s.Seconds / 60, Y: y})
				}
			}
			c.Lines = append(c.Lines, line)
		}
		var svg bytes.Buffer
		if err := plot.Draw(&svg, c); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if err := os.WriteFile(filepath.Join(folder, p.file), svg.Bytes(), 0o644); err != nil {
			return err
		}
	}
	return nil
}
