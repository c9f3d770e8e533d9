package pgtest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// reachTimeout bounds the first connection to a running server.
const reachTimeout = 15 * time.Second

var (
	errUnset    = errors.New("not set")
	errURLIsSet = errors.New("not tried, because PGTEST_DATABASE_URL is set")
	errBinIsSet = errors.New("not tried, because PGTEST_BIN is set")
	errOwn      = errors.New("not tried, because the test needs its own server")
	errUnparsed = errors.New("is not a connection string (not shown, since it may contain a password)")
)

// Find returns the first source that works. If a variable is set and its source does not
// work, no other source is tried. The error is a *SourceError.
func (e Environment) Find(ctx context.Context) (Source, error) {
	if e.DatabaseURL == "" {
		return e.findBinaries(ctx, errUnset)
	}
	config, err := reach(ctx, e.DatabaseURL)
	if err != nil {
		return Source{}, &SourceError{err, errURLIsSet, errURLIsSet, errURLIsSet, adviceURL}
	}
	return Source{Config: config}, nil
}

// findBinaries is Find without the running server. url is the reason why that is not used.
func (e Environment) findBinaries(ctx context.Context, url error) (Source, error) {
	as, err := unprivileged()
	if err != nil {
		return Source{}, &SourceError{url, err, err, err, e.advice()}
	}
	bin, installed := e.installed(ctx, as)
	if installed == nil {
		return Source{Bin: bin}, nil
	}
	if e.Bin != "" {
		return Source{}, &SourceError{url, installed, errBinIsSet, errBinIsSet, adviceBin}
	}
	bin, reasons := e.download(ctx, as)
	if bin == "" {
		return Source{}, &SourceError{url, installed, reasons[0], reasons[1], e.advice()}
	}
	return Source{Bin: bin}, nil
}

// reach parses a connection string and connects once. It does not wrap the parser's error,
// which may quote a part of the password.
func reach(ctx context.Context, url string) (*pgxpool.Config, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, errUnparsed
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	return config, conn.Close(ctx)
}

// Source is the source of a server. One of its fields is set.
type Source struct {
	// Config connects to a running server.
	Config *pgxpool.Config
	// Bin is a folder with initdb and postgres to start a server from.
	Bin string
}

// SourceError has the errors of all four sources of a server.
type SourceError struct {
	// URL is the error of PGTEST_DATABASE_URL.
	URL error
	// Installed is the error of PGTEST_BIN and the installed binaries.
	Installed error
	// Npm is the error of the npm package.
	Npm error
	// Download is the error of the Maven repository.
	Download error
	// Advice tells the user what to do.
	Advice string
}

// Error returns the four errors and the advice.
func (e *SourceError) Error() string {
	return fmt.Sprintf("pgtest: no PostgreSQL to test with:"+
		"\n1. a running server, PGTEST_DATABASE_URL: %v"+
		"\n2. an installed initdb and postgres, PGTEST_BIN or the usual folders: %v"+
		"\n3. the npm package: %v"+
		"\n4. a download: %v"+
		"\nWhat to do: %s", e.URL, e.Installed, e.Npm, e.Download, e.Advice)
}

// Unwrap returns the four errors.
func (e *SourceError) Unwrap() []error {
	return []error{e.URL, e.Installed, e.Npm, e.Download}
}
