package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout bounds each wait for a server.
const startTimeout = time.Minute

// ServerConfig configures a server for one test.
type ServerConfig struct {
	// Fsync makes commits survive a crash: it turns on fsync, synchronous_commit
	// and full_page_writes. Without it the server is faster, but after a kill it may
	// not start again. The default is off.
	Fsync bool
	// Settings has further settings of postgresql.conf, by name. They override those
	// of this package. An unknown setting fails the start.
	Settings map[string]string
	// Environment is searched for the binaries. The default is CurrentEnvironment.
	Environment *Environment
}

// Server is a PostgreSQL that listens on a Unix-domain socket in a temporary folder. When
// this process ends, the server ends and its folder is removed. Its methods may be called
// concurrently.
type Server struct {
	mu         sync.Mutex
	supervisor *supervisor
	run        *run
}

// Start starts a server and returns when it accepts connections. It never uses the server
// of PGTEST_DATABASE_URL. ctx bounds only the start. After an error the folder is removed.
// Stop ends the server.
func Start(ctx context.Context, config ServerConfig) (*Server, error) {
	environment := CurrentEnvironment()
	if config.Environment != nil {
		environment = *config.Environment
	}
	source, err := environment.findBinaries(ctx, errOwn)
	if err != nil {
		return nil, err
	}
	return launch(ctx, source.Bin, config)
}

// launch starts a server with the binaries in a folder.
func launch(ctx context.Context, bin string, config ServerConfig) (*Server, error) {
	as, err := unprivileged()
	if err != nil {
		return nil, err
	}
	supervisor, err := supervise(bin, as)
	if err != nil {
		return nil, fmt.Errorf("pgtest: start server: %w", err)
	}
	server := &Server{supervisor: supervisor}
	if err := server.begin(ctx, config); err != nil {
		_ = server.Stop()
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return nil, fmt.Errorf("pgtest: start server: %w", err)
	}
	return server, nil
}

// begin makes the data folder and starts the server for the first time.
func (s *Server) begin(ctx context.Context, config ServerConfig) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	// The supervisor stops whatever it does when its input ends.
	defer context.AfterFunc(ctx, s.supervisor.release)()
	if err := s.supervisor.init(); err != nil {
		return err
	}
	if err := s.supervisor.configure(config); err != nil {
		return err
	}
	return s.start(ctx)
}

// ConnString returns a connection string for a database and the superuser postgres, which
// has no password.
func (s *Server) ConnString(database string) string {
	query := url.Values{
		"host":    {s.Folder()},
		"port":    {port},
		"user":    {"postgres"},
		"sslmode": {"disable"},
	}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}

// Folder returns the temporary folder with the data, the log and the socket.
func (s *Server) Folder() string { return s.supervisor.folder }

// Socket returns the path of the Unix-domain socket.
func (s *Server) Socket() string { return filepath.Join(s.Folder(), ".s.PGSQL."+port) }

// Kill ends the server with SIGKILL. It returns when the last process of the server has
// ended.
func (s *Server) Kill() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.run.hasEnded() {
		return nil
	}
	if err := s.run.kill(); err != nil {
		return fmt.Errorf("pgtest: kill server: %w", err)
	}
	return s.run.wait()
}

// Restart starts the server on its existing data, and returns when it accepts connections.
// If the server is running, Restart first shuts it down and disconnects its clients.
func (s *Server) Restart(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if err := s.run.shutDown(); err != nil {
		return fmt.Errorf("pgtest: restart server: %w", err)
	}
	if err := s.start(ctx); err != nil {
		return fmt.Errorf("pgtest: restart server: %w", err)
	}
	return nil
}

// Stop ends the server at once and removes its folder. Further calls do nothing.
func (s *Server) Stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if err := s.supervisor.end(); err != nil {
		return fmt.Errorf("pgtest: stop server: %w", err)
	}
	return nil
}

// check returns an error when the server has ended.
func (s *Server) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.run.hasEnded() {
		return nil
	}
	return fmt.Errorf("pgtest: the server has ended; the end of its log:\n%s", s.supervisor.log())
}

// start starts the server and waits until it accepts connections.
func (s *Server) start(ctx context.Context) error {
	run, err := s.supervisor.start()
	if err != nil {
		return err
	}
	s.run = run
	go s.watch(run)
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return s.accept(ctx)
}

// watch tells the supervisor when a server has ended by itself.
func (s *Server) watch(run *run) {
	<-run.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	run.forget()
}

// accept returns when the server accepts a connection, has ended or ctx has.
func (s *Server) accept(ctx context.Context) error {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for {
		conn, err := pgx.Connect(ctx, s.ConnString("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-s.run.ended:
			return fmt.Errorf("it ended before it accepted connections; the end of its log:\n%s", s.supervisor.log())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w; the end of its log:\n%s", context.Cause(ctx), err, s.supervisor.log())
		case <-ticker.C:
		}
	}
}
