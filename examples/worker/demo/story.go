package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// statusEvery is how often the story says where the jobs stand.
const statusEvery = 3 * time.Second

// story tells what happens, each line with its second.
type story struct {
	out    io.Writer
	began  time.Time
	told   map[int64]bool // events, by their number
	status time.Duration  // when the next one is due
}

func newStory(out io.Writer) *story {
	return &story{out: out, told: map[int64]bool{}, status: statusEvery}
}

// begin starts the clock, which stands at 0 until then.
func (s *story) begin() { s.began = time.Now() }

func (s *story) elapsed() time.Duration {
	if s.began.IsZero() {
		return 0
	}
	return time.Since(s.began)
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%5.1fs  %s\n", s.elapsed().Seconds(), fmt.Sprintf(format, args...))
}

// tell tells what has happened since it was called last. Numbers are given before
// a commit, so a lower one may come later: all events are read each time.
func (d *demo) tell(ctx context.Context) error {
	events, err := d.db.events(ctx)
	if err != nil {
		return err
	}
	for _, e := range events {
		if line := e.line(); !d.story.told[e.Seq] && line != "" {
			d.story.say("%s", line)
		}
		d.story.told[e.Seq] = true
	}
	if d.story.elapsed() < d.story.status {
		return nil
	}
	d.story.status += statusEvery
	p, err := d.db.progress(ctx)
	if err != nil {
		return err
	}
	d.story.say("-- %d jobs succeeded, %d dead letters; %d leased, %d waiting",
		p.Succeeded, p.Dead, p.Leased, p.Waiting)
	return nil
}

// label is a job in few letters.
func label(kind, id string) string { return kind + " " + id[:4] }

// list is jobs in few letters.
func list(jobs []heldJob) string {
	labels := make([]string, len(jobs))
	for i, job := range jobs {
		labels[i] = label(job.Kind, job.ID)
	}
	if len(labels) == 0 {
		return "nothing"
	}
	return strings.Join(labels, " and ")
}
