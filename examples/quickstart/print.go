package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/lease-governance/leasereaper/reaper"
)

// none stands for an empty cell.
const none = "-"

// heading begins a step: its title, and one line that explains it.
func heading(out io.Writer, title, line string) {
	fmt.Fprintf(out, "\n%s\n%s\n%s\n\n", title, strings.Repeat("-", len(title)), line)
}

func printJobs(out io.Writer, jobs []job) error {
	lines := make([][]string, len(jobs))
	for i, job := range jobs {
		lines[i] = []string{
			job.Kind, job.State, ofMax(job.Attempts, job.MaxAttempts), orNone(job.Owner), job.clock(),
			orNone(job.LastError),
		}
	}
	return table(out, []string{"KIND", "STATE", "ATTEMPTS", "OWNER", "CLOCK", "LAST ERROR"}, lines)
}

// clock says how far the time is that matters in a job's state.
func (j job) clock() string {
	switch {
	case j.Overdue != nil && *j.Overdue >= 0:
		return fmt.Sprintf("overdue %ds", *j.Overdue)
	case j.Overdue != nil:
		return fmt.Sprintf("live %ds", -*j.Overdue)
	case j.State != "ready" && j.State != "retry_waiting":
		return none
	case j.DueIn > 0:
		return fmt.Sprintf("due in %ds", j.DueIn)
	}
	return "due now"
}

func printStale(out io.Writer, jobs []reaper.Job) error {
	lines := make([][]string, len(jobs))
	for i, job := range jobs {
		lines[i] = []string{
			job.JobKind, ofMax(job.Attempts, job.MaxAttempts), orNone(job.LeaseOwner),
			fmt.Sprintf("overdue %ds", job.OverdueSeconds), job.WouldAction,
		}
	}
	return table(out, []string{"KIND", "ATTEMPTS", "OWNER", "CLOCK", "WOULD"}, lines)
}

func printDeadLetters(out io.Writer, letters []deadLetter) error {
	lines := make([][]string, len(letters))
	for i, letter := range letters {
		lines[i] = []string{
			letter.Kind, ofMax(letter.Attempts, letter.MaxAttempts), letter.MovedBy, letter.FinalError,
		}
	}
	return table(out, []string{"KIND", "ATTEMPTS", "MOVED BY", "FINAL ERROR"}, lines)
}

// table prints aligned columns.
func table(out io.Writer, header []string, lines [][]string) error {
	const padding = 2
	w := tabwriter.NewWriter(out, 0, 0, padding, ' ', 0)
	fmt.Fprintln(w, strings.Join(header, "\t"))
	for _, line := range lines {
		fmt.Fprintln(w, strings.Join(line, "\t"))
	}
	return w.Flush()
}

func ofMax(attempts, maxAttempts int) string { return fmt.Sprintf("%d of %d", attempts, maxAttempts) }

func orNone(s *string) string {
	if s == nil {
		return none
	}
	return *s
}
