//go:build unix

package main

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/pgtest"
)

// served is a console that runs.
type served struct {
	t       *testing.T
	command *exec.Cmd
	address string
	errs    *strings.Builder
}

// serve starts the console on a free port, for two databases, of which eu is a
// production one.
func serve(t *testing.T, args ...string) *served {
	t.Helper()
	file := filepath.Join(t.TempDir(), fileName)
	require.NoError(t, os.WriteFile(file, []byte(`databases:
  shop: {url_env: SHOP, colour: green}
  eu: {url_env: SHOP, colour: red, production: true}
`), 0o600))
	s := &served{t: t, errs: &strings.Builder{}}
	s.command = exec.CommandContext(t.Context(), "leasereaper",
		append([]string{"console", "--config", file, "--listen", "127.0.0.1:0", "--actor", "anna"}, args...)...)
	s.command.Env = append(os.Environ(), "SHOP="+address(t, pgtest.New(t)))
	s.command.Stderr = s.errs
	out, err := s.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.command.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err, s.errs)
	s.address, _, _ = strings.Cut(strings.TrimPrefix(line, "console on "), ",")
	return s
}

// ask sends a request under a name of the host, and returns the status and the page.
func (s *served) ask(method, path, host string) (status int, page string) {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, strings.NewReader("key=queue.lease.reaper_enabled"))
	require.NoError(s.t, err)
	request.Host = host
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(request)
	require.NoError(s.t, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(s.t, err)
	require.NoError(s.t, answer.Body.Close())
	return answer.StatusCode, string(body)
}

// ends sends a signal, and wants an end that is no error.
func (s *served) ends(signal syscall.Signal) {
	s.t.Helper()
	require.NoError(s.t, s.command.Process.Signal(signal))
	require.NoError(s.t, s.command.Wait(), s.errs)
}

// A console that somebody starts to look at a queue could change it, or would end with
// an error.
func TestConsoleLooks(t *testing.T) {
	t.Parallel()

	s := serve(t)
	status, page := s.ask(http.MethodGet, "/shop/overview", "")
	require.Equal(t, http.StatusOK, status, page)
	require.Contains(t, page, "eu")
	status, _ = s.ask(http.MethodPost, "/shop/gates/close", "")
	require.Equal(t, http.StatusForbidden, status)
	s.ends(syscall.SIGINT)
	require.Empty(t, s.errs.String())
}

// Somebody would act in a production database who meant another one, or not at all.
func TestConsoleActs(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		args     []string
		shop, eu int
	}{
		"not in production":        {[]string{"--act"}, http.StatusSeeOther, http.StatusForbidden},
		"in production by name":    {[]string{"--act", "--confirm", "eu"}, http.StatusSeeOther, http.StatusSeeOther},
		"by the level of gates":    {[]string{"--level", "gates"}, http.StatusSeeOther, http.StatusForbidden},
		"not in one that is alone": {[]string{"--act", "--database", "eu"}, http.StatusNotFound, http.StatusForbidden},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			s := serve(t, test.args...)
			status, page := s.ask(http.MethodPost, "/shop/gates/close", "")
			require.Equal(t, test.shop, status, page)
			status, page = s.ask(http.MethodPost, "/eu/gates/close", "")
			require.Equal(t, test.eu, status, page)
			s.ends(syscall.SIGTERM)
		})
	}
}

// A page of another site could read the console, and act in it, by giving its own name
// the address of this machine.
func TestConsoleAnswersOnlyToNamesOfThisMachine(t *testing.T) {
	t.Parallel()

	s := serve(t)
	tests := map[string]int{
		"localhost": http.StatusOK, "LOCALHOST:9000": http.StatusOK, "127.0.0.1": http.StatusOK,
		"[::1]:80": http.StatusOK, "[::1]": http.StatusOK,
		"evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:80": http.StatusMisdirectedRequest,
		"10.0.0.1": http.StatusMisdirectedRequest, "127.0.0.1.nip.io": http.StatusMisdirectedRequest,
	}
	for host, want := range tests {
		status, _ := s.ask(http.MethodGet, "/shop/overview", host)
		require.Equal(t, want, status, host)
	}
	s.ends(syscall.SIGINT)
}

// Somebody would open a console to the network without knowing.
func TestConsoleWarnsWhereOthersReachIt(t *testing.T) {
	t.Parallel()

	s := serve(t, "--act", "--listen", "0.0.0.0:0")
	s.ends(syscall.SIGINT)
	require.Contains(t, s.errs.String(), "whoever reaches 0.0.0.0:0 may change tables, as anna")
}
