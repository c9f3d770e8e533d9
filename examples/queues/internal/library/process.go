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

// Process is a running program of a library, on a test's database.
type Process struct {
	command *exec.Cmd
	ended   chan struct{}
	err     error // once it has ended

	mu     sync.Mutex
	output bytes.Buffer
}

// Start starts a program. It is killed at the end of the test. If the test fails, its
// output is logged.
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

// Run runs a program to its end and returns its output.
func Run(t testing.TB, pool *pgxpool.Pool, command *exec.Cmd) string {
	t.Helper()
	p := Start(t, pool, command)
	<-p.ended
	require.NoError(t, p.err, p.text())
	return p.text()
}

// Kill ends the program with SIGKILL, as the kernel does when memory runs out.
func (p *Process) Kill() {
	_ = p.command.Process.Kill()
	<-p.ended
}

// Write keeps the program's output.
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
