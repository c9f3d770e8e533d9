package library

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

// Process is a program of a library's, on a test's database.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error // once it has ended

	mu     sync.Mutex
	output bytes.Buffer
}

// Start starts a program, which is killed at the test's end. What it printed is
// logged when the test has failed.
func Start(t testing.TB, pool *pgxpool.Pool, command *exec.Cmd) *Process {
	t.Helper()
	p := &Process{command: command, ended: make(chan struct{})}
	command.Env = append(append(os.Environ(), command.Env...), environment(pool)...)
	command.Stdout, command.Stderr = p, p
	require.NoError(t, command.Start())
	go func() {
		p.err = command.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s printed:\n%s", command.Path, p.text())
		}
	})
	return p
}

// Run runs a program to its end, and returns what it printed.
func Run(t testing.TB, pool *pgxpool.Pool, command *exec.Cmd) string {
	t.Helper()
	p := Start(t, pool, command)
	<-p.ended
	require.NoError(t, p.err, p.text())
	return p.text()
}

// Kill ends it with SIGKILL, as the out-of-memory killer does.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Write keeps what the program prints.
func (p *Process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.Write(text)
}

func (p *Process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.output.String()
}
