package demo

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

const (
	// patience bounds the start and the end of a worker.
	patience = 20 * time.Second

	// memory is how many lines of a worker's log are kept.
	memory = 20
)

var (
	errStart = errors.New("demo: a worker did not start")
	errStop  = errors.New("demo: a worker did not stop")
)

// worker is a process that runs this very program.
type worker struct {
	name    string
	addr    string
	command *exec.Cmd
	stdin   io.Closer     // at its end the worker stops, so it does not outlive the demo
	ended   chan struct{} // closed when it has
	err     error         // how it ended

	mu  sync.Mutex
	log []string
}

// startWorker returns when the worker is at work.
func startWorker(name, url string, args []string) (*worker, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(program, args...)
	command.Env = append(environment(), "DATABASE_URL="+url)
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := command.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	w := &worker{name: name, command: command, stdin: stdin, ended: make(chan struct{})}
	if err := w.listen(stderr); err != nil {
		return nil, err
	}
	return w, nil
}

// environment is that of this process, less what would change the workers.
func environment() []string {
	var kept []string
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "WORKER_") && !strings.HasPrefix(entry, "DATABASE_URL=") {
			kept = append(kept, entry)
		}
	}
	return kept
}

// listen reads the worker's log to its end, and returns when that says where the
// metrics are.
func (w *worker) listen(log io.Reader) error {
	serving := make(chan string, 1)
	go func() {
		defer close(w.ended)
		for lines := bufio.NewScanner(log); lines.Scan(); {
			w.note(lines.Text(), serving)
		}
		w.err = w.command.Wait()
	}()
	select {
	case w.addr = <-serving:
		return nil
	case <-w.ended:
	case <-time.After(patience):
	}
	_ = w.command.Process.Kill()
	<-w.ended
	return fmt.Errorf("%w\n%s", errStart, w.lastWords())
}

// note keeps a line, and passes on the address in the one that has it.
func (w *worker) note(line string, serving chan<- string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, line)
	w.log = w.log[max(0, len(w.log)-memory):]
	var record struct{ Msg, Addr string }
	if err := json.Unmarshal([]byte(line), &record); err == nil && record.Msg == "serving" {
		serving <- record.Addr
	}
}

func (w *worker) lastWords() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("the log of %s ends in\n%s\n", w.name, strings.Join(w.log, "\n"))
}

// stop ends the worker in order.
func (w *worker) stop() error {
	if err := w.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-w.ended:
	case <-time.After(patience):
		return fmt.Errorf("%w\n%s", errStop, w.lastWords())
	}
	if w.err != nil {
		return fmt.Errorf("%w: %w\n%s", errStop, w.err, w.lastWords())
	}
	return nil
}
