package suite

import (
	"bufio"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// serverLog reads what the server appends to its log.
type serverLog struct {
	file *os.File
}

// openLog opens the log at its end.
func openLog(path string) (*serverLog, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	_, err = file.Seek(0, io.SeekEnd)
	return &serverLog{file}, err
}

func (l *serverLog) close() { _ = l.file.Close() }

// step is something that the server did.
type step struct {
	name   string
	millis float64
}

// steps returns what was logged since the last call.
func (l *serverLog) steps() (steps []step, err error) {
	lines := bufio.NewReader(l.file)
	for {
		line, err := lines.ReadString('\n')
		if s, ok := parseStep(line); ok {
			steps = append(steps, s)
		}
		if errors.Is(err, io.EOF) {
			return steps, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// duration is a line about a statement, of which it shows the first line: in this
// project that is its name.
var duration = regexp.MustCompile(`duration: ([0-9.]+) ms  (parse|bind|execute|statement)\b[^:]*: (?:-- )?(\S+)`)

// parseStep tells from a line what was done. To bind a statement is to plan it, if
// it has no plan yet that serves.
func parseStep(line string) (step, bool) {
	found := duration.FindStringSubmatch(line)
	if found == nil {
		return step{}, false
	}
	millis, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		return step{}, false
	}
	what := map[string]string{"parse": ", parse", "bind": ", bind and plan"}[found[2]]
	return step{strings.ToLower(found[3]) + what, millis}, true
}
