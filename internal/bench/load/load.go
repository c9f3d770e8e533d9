// Package load tells whether the machine has other work than the benchmarks. They
// look when they do nothing themselves: before they start, and in their pauses.
package load

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// quiet is the share of the processors that other work may take on a machine that
// is called quiet.
const quiet = 0.1

// Machine is what was seen of the machine during a run.
type Machine struct {
	proc    string
	pause   func()
	busy    []float64 // the share of the processors that other work took, look by look
	average []string  // the load average of the last minute, look by look
	err     error     // why nothing more was seen
}

// New returns a machine of which nothing was seen. It is seen in the files of a
// folder, which Linux has at /proc, and for as long as a pause lasts.
func New(proc string, pause func()) *Machine { return &Machine{proc: proc, pause: pause} }

// Look measures how busy the processors are while the caller pauses.
func (m *Machine) Look() {
	if m.err == nil {
		m.err = m.look()
	}
}

func (m *Machine) look() error {
	average, err := os.ReadFile(filepath.Join(m.proc, "loadavg"))
	if err != nil {
		return err
	}
	before, err := m.times()
	if err != nil {
		return err
	}
	m.pause()
	after, err := m.times()
	if err != nil {
		return err
	}
	minute, _, _ := strings.Cut(string(average), " ")
	m.average, m.busy = append(m.average, minute), append(m.busy, after.since(before))
	return nil
}

// times are what the processors did since the machine started, in ticks.
type times struct{ all, idle int64 }

func (m *Machine) times() (times, error) {
	text, err := os.ReadFile(filepath.Join(m.proc, "stat"))
	if err != nil {
		return times{}, err
	}
	return parseTimes(string(text))
}

// parseTimes reads the first line of /proc/stat: user, nice, system, idle, iowait,
// irq, softirq and steal. What follows is part of user and nice.
func parseTimes(text string) (t times, err error) {
	line, _, _ := strings.Cut(text, "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return t, fmt.Errorf("load: stat begins with %q", line)
	}
	for i, field := range fields[1:9] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return t, fmt.Errorf("load: stat: %w", err)
		}
		t.all += ticks
		if i == 3 || i == 4 { // idle, and idle until the disk answers
			t.idle += ticks
		}
	}
	return t, nil
}

// since is the share of the processors that was in use since an earlier time.
func (t times) since(before times) float64 {
	if t.all == before.all {
		return 0
	}
	return 1 - float64(t.idle-before.idle)/float64(t.all-before.all)
}
