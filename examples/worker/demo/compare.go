package demo

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/lease-governance/leasereaper/examples/worker/reapjob"
	"github.com/lease-governance/leasereaper/examples/worker/work"
)

// metricsOfTheLiving checks that they say what the witness says. A worker counts a
// lease just after its end, so it may take a moment.
func (d *demo) metricsOfTheLiving(ctx context.Context) (finding, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	again := time.NewTicker(tick)
	defer again.Stop()
	for {
		f, err := d.compare(ctx)
		if f.ok || err != nil {
			return f, err
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return f, nil
		}
	}
}

func (d *demo) compare(ctx context.Context) (finding, error) {
	events, err := d.db.events(ctx)
	if err != nil {
		return finding{}, err
	}
	same := true
	lines := []string{"what the metrics of the living say is what the tables say"}
	for _, s := range d.crew.seats {
		scraped, err := scrape(ctx, s.worker.addr)
		if err != nil {
			return finding{}, err
		}
		counted, witnessed := scraped.counts(), witnessed(events, s.worker.name)
		lines = append(lines, fmt.Sprintf("%-9s  %s", s.worker.name, counted))
		if !maps.Equal(counted, witnessed) {
			same = false
			lines = append(lines, fmt.Sprintf("%-9s  %s", "  tables:", witnessed))
		}
	}
	return found(same, "%s", strings.Join(lines, "\n")), nil
}

// metricsOfTheKilled checks that they had not claimed more than was done. What was
// done between the last scrape and the end, only the tables know.
func (d *demo) metricsOfTheKilled(ctx context.Context) (finding, error) {
	events, err := d.db.events(ctx)
	within := true
	scraped, done := 0, 0
	for _, k := range d.kills {
		witnessed := witnessed(events, k.name)
		for key, n := range k.counts {
			within = within && n <= witnessed[key]
		}
		scraped += k.counts.sum()
		done += witnessed.sum()
	}
	return found(within,
		"the metrics of the killed, just before, had %d of the %d leases that they ended", scraped, done), err
}

// gauges checks what the workers say of the queue.
func (d *demo) gauges(ctx context.Context) (finding, error) {
	ok := true
	var lines []string
	for _, s := range d.crew.seats {
		m, err := scrape(ctx, s.worker.addr)
		if err != nil {
			return finding{}, err
		}
		up, open := m.gauge("leasereaper_database_up"), m.gauge("leasereaper_gate_open")
		stale, overdue := m.gauge("leasereaper_stale_leases"), m.gauge("leasereaper_oldest_overdue_seconds")
		ok = ok && up == 1 && open == openGates && stale == 0 && overdue == 0
		lines = append(lines, fmt.Sprintf("%-9s  sees %d stale leases, and %d of %d gates open",
			s.worker.name, stale, open, openGates))
	}
	return found(ok, "%s", strings.Join(lines, "\n")), nil
}

// openGates is how many gates a scrape shows, the window among them.
const openGates = 4

// ending is how leases ended on jobs of a kind.
type ending struct{ outcome, kind string }

// counts are how many leases ended how.
type counts map[ending]int

func (c counts) sum() (total int) {
	for _, n := range c {
		total += n
	}
	return total
}

// String adds up over the kinds.
func (c counts) String() string {
	byOutcome := map[string]int{}
	for e, n := range c {
		byOutcome[e.outcome] += n
	}
	var parts []string
	for _, outcome := range slices.Sorted(maps.Keys(byOutcome)) {
		parts = append(parts, fmt.Sprintf("%s %d", outcome, byOutcome[outcome]))
	}
	return strings.Join(parts, ", ")
}

// comparable reports whether metrics and tables can agree on an ending: what only
// the worker knows of is in no table, and the reap jobs go on while one counts.
func (e ending) comparable() bool {
	switch e.outcome {
	case "", string(work.Lost), string(work.Unknown):
		return false
	}
	return e != ending{string(work.Succeeded), reapjob.Kind}
}

// witnessed counts the leases that a worker ended, by the witness's book.
func witnessed(events []event, worker string) counts {
	total := counts{}
	for _, e := range events {
		if end := (ending{e.Outcome, e.JobKind}); e.By == worker && end.comparable() {
			total[end]++
		}
	}
	return total
}

// counts adds up what a worker says of leases: of its own, and of those that its
// reaper reaped.
func (m metrics) counts() counts {
	total := counts{}
	for _, name := range []string{"worker_jobs_total", "leasereaper_reaped_total"} {
		for _, metric := range m[name].GetMetric() {
			labels := labelsOf(metric)
			end := ending{labels["outcome"], labels["kind"]}
			if n := int(metric.GetCounter().GetValue()); n > 0 && end.comparable() {
				total[end] += n
			}
		}
	}
	return total
}
