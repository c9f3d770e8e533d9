//go:build unix

package pgtest

import (
	"bufio"
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed supervisor.sh
var script string

// supervisor is a shell that owns one server and its folder, and the pipe to the shell.
// Only this process can write to the pipe, so the pipe ends when this process ends.
type supervisor struct {
	folder  string
	command *exec.Cmd
	stdin   io.WriteCloser
	answers *bufio.Reader
	end     func() error
}

// supervise starts a supervisor in the first folder that the account can make.
func supervise(bin string, as account) (*supervisor, error) {
	var reasons []error
	for _, folder := range folders() {
		s, err := superviseIn(folder, bin, as)
		if err == nil {
			return s, nil
		}
		reasons = append(reasons, err)
	}
	return nil, errors.Join(reasons...)
}

func superviseIn(folder, bin string, as account) (*supervisor, error) {
	s := &supervisor{folder: folder}
	s.command = exec.Command("/bin/sh", "-c", script, "pgtest", folder, bin)
	as.runAs(s.command)
	var complaint bytes.Buffer
	s.command.Stderr = &complaint
	if err := s.launch(); err != nil {
		return nil, fmt.Errorf("run /bin/sh: %w", err)
	}
	if _, err := s.answer(); err != nil {
		_ = s.end()
		return nil, fmt.Errorf("make folder %q: %s", folder, strings.TrimSpace(complaint.String()))
	}
	return s, nil
}

// launch starts the shell with a pipe in each direction.
func (s *supervisor) launch() error {
	stdin, err := s.command.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := s.command.StdoutPipe()
	if err != nil {
		return errors.Join(err, stdin.Close())
	}
	s.stdin, s.answers = stdin, bufio.NewReader(answers)
	s.end = sync.OnceValue(s.finish)
	return s.command.Start()
}

// init makes the data folder.
func (s *supervisor) init() error {
	status, err := s.request("init")
	if err != nil {
		return err
	}
	if status != "0" {
		return fmt.Errorf("initdb ended with status %s; the end of its output:\n%s", status, s.log())
	}
	return nil
}

// configure appends to the configuration of the data folder.
func (s *supervisor) configure(config ServerConfig) error {
	path := filepath.Join(s.folder, "data", "postgresql.conf")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteString(settings(s.folder, config))
	return errors.Join(err, file.Close())
}

// start runs the server. It opens the pipe alive for reading before the server opens it
// for writing.
func (s *supervisor) start() (*run, error) {
	alive, err := openFIFO(filepath.Join(s.folder, "alive"))
	if err != nil {
		return nil, err
	}
	answer, err := s.request("start")
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	pid, err := strconv.Atoi(answer)
	if err != nil {
		return nil, errors.Join(err, alive.Close())
	}
	return newRun(pid, alive, func() { _ = s.send("ended") }), nil
}

// request sends a word and returns the answer.
func (s *supervisor) request(word string) (string, error) {
	if err := s.send(word); err != nil {
		return "", err
	}
	return s.answer()
}

func (s *supervisor) send(word string) error {
	if _, err := io.WriteString(s.stdin, word+"\n"); err != nil {
		return fmt.Errorf("the server was stopped: %w", err)
	}
	return nil
}

func (s *supervisor) answer() (string, error) {
	line, err := s.answers.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// release makes the supervisor end the server and itself. It does not wait for that.
func (s *supervisor) release() { _ = s.stdin.Close() }

// finish releases the supervisor and waits until its folder is removed.
func (s *supervisor) finish() error {
	s.release()
	late := time.AfterFunc(startTimeout, func() { _ = s.command.Process.Kill() })
	defer late.Stop()
	err := s.command.Wait()
	return errors.Join(err, os.RemoveAll(s.folder))
}

// log returns the last lines of the log of initdb and the server.
func (s *supervisor) log() string {
	const lines = 20
	text, err := os.ReadFile(filepath.Join(s.folder, "log"))
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
