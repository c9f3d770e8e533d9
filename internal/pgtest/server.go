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

// startTimeout bounds every wait for a server when the context does not.
const startTimeout = time.Minute

// ServerConfig is what a server of a test's own is to be like.
type ServerConfig struct {
	// Fsync makes commits survive a crash: it turns on fsync, synchronous_commit
	// and full_page_writes. Without it a killed server may not start again, and
	// everything is faster. The default is off.
	Fsync bool
	// Settings are further lines of postgresql.conf, by name, and win over those
	// of this package. A setting that PostgreSQL does not know fails the start.
	Settings map[string]string
	// Environment is where the binaries are looked for. The default is
	// CurrentEnvironment.
	Environment *Environment
}

// Server is a PostgreSQL that listens on a Unix-domain socket in a temporary
// folder. It ends, and its folder is removed, no later than this process ends.
// Its methods may be called concurrently.
type Server struct {
	mu         sync.Mutex
	supervisor *supervisor
	run        *run
}

// Start starts a server and returns when it accepts connections. It never uses
// the server of PGTEST_DATABASE_URL. The context bounds the start alone; what it
// leaves unfinished is removed. Stop ends the server.
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

// launch starts the server of the binaries in a folder.
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

	// At the end of its input the supervisor leaves off whatever it is at.
	defer context.AfterFunc(ctx, s.supervisor.release)()
	if err := s.supervisor.init(); err != nil {
		return err
	}
	if err := s.supervisor.configure(config); err != nil {
		return err
	}
	return s.start(ctx)
}

// ConnString returns a connection string, without a password, for the superuser
// postgres and a database.
func (s *Server) ConnString(database string) string {
	query := url.Values{
		"host":    {s.Folder()},
		"port":    {port},
		"user":    {"postgres"},
		"sslmode": {"disable"},
	}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}

// Folder returns the temporary folder, which holds the data, the log and the
// socket.
func (s *Server) Folder() string { return s.supervisor.folder }

// Socket returns the path of the Unix-domain socket, to be dialed.
func (s *Server) Socket() string { return filepath.Join(s.Folder(), ".s.PGSQL."+port) }

// Kill ends the server as a loss of power to its process would: with SIGKILL. It
// returns when the last process of the server is gone.
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

// Restart starts the server on the data it has, and returns when it accepts
// connections. A server that runs is shut down first, and its clients are
// disconnected.
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
	return fmt.Errorf("pgtest: the server has ended, its log ends in\n%s", s.supervisor.log())
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

// watch lets the supervisor know when a server has ended by itself.
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
			return fmt.Errorf("it ended before it accepted connections, its log ends in\n%s", s.supervisor.log())
		case <-ctx.Done():
			return fmt.Errorf("%w: %w, its log ends in\n%s", context.Cause(ctx), err, s.supervisor.log())
		case <-ticker.C:
		}
	}
}
