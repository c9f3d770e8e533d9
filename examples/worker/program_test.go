package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
)

// asProgram makes the test's binary run main instead of the tests.
const asProgram = "LEASEREAPER_WORKER_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// program is the service in a process of its own.
type program struct {
	*exec.Cmd

	name  string
	ended chan struct{}

	mu  sync.Mutex
	log bytes.Buffer
}

// startProgram returns when the program serves. It is killed at the test's end.
func startProgram(t *testing.T, pool *pgxpool.Pool, name string, args ...string) *program {
	t.Helper()
	args = append([]string{"--name", name, "--listen", "127.0.0.1:0", "--poll", "10ms",
		"--interval", "100ms", "--min-interval", "10ms", "--settle", "1ns"}, args...)
	p := &program{Cmd: exec.Command(os.Args[0], args...), name: name, ended: make(chan struct{})}
	p.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL="+connString(t, pool))
	stderr, err := p.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	serving := make(chan struct{})
	go p.read(stderr, sync.OnceFunc(func() { close(serving) }))
	t.Cleanup(p.kill)
	select {
	case <-serving:
	case <-p.ended:
		require.FailNow(t, "it ended", p.text())
	case <-time.After(fixture.Waiting):
		require.FailNow(t, "it does not serve", p.text())
	}
	return p
}

func (p *program) read(log io.Reader, serving func()) {
	for lines := bufio.NewScanner(log); lines.Scan(); {
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		p.mu.Unlock()
		var record struct{ Msg string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "serving" {
			serving()
		}
	}
	_ = p.Wait()
	close(p.ended)
}

func (p *program) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// kill kills it with SIGKILL.
func (p *program) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// connString returns a connection string for the database of a pool.
func connString(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	config := pool.Config().ConnConfig
	if !strings.Contains(config.ConnString(), "://") {
		return config.ConnString() + " dbname=" + config.Database
	}
	parsed, err := url.Parse(config.ConnString())
	require.NoError(t, err)
	parsed.Path = "/" + config.Database
	return parsed.String()
}

// once runs the program to its end, without a database unless the environment
// says so.
func once(t *testing.T, environment []string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, complaints bytes.Buffer
	command := exec.CommandContext(ctx, os.Args[0], args...)
	command.Env = append(append(os.Environ(), asProgram+"=1", "DATABASE_URL="), environment...)
	command.Stdout, command.Stderr = &out, &complaints
	err := command.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit, complaints.String())
	}
	return command.ProcessState.ExitCode(), out.String(), complaints.String()
}
