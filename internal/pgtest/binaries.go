package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

var errNoFolder = errors.New("found none in PATH, through pg_config or in the usual folders")

// installed returns the folder of the installed PostgreSQL to use. The error has a reason
// for each folder that has a PostgreSQL.
func (e Environment) installed(ctx context.Context, as account) (string, error) {
	if e.Bin != "" {
		_, err := inspect(ctx, e.Bin, as)
		return e.Bin, err
	}
	var reasons []error
	for _, folder := range append(e.onPath(), e.byPgConfig(ctx)...) {
		if _, err := inspect(ctx, folder, as); err != nil {
			reasons = append(reasons, err)
			continue
		}
		return folder, nil
	}
	folder, err := newest(ctx, e.inInstalls(), as)
	return folder, errors.Join(append(reasons, err)...)
}

// onPath returns the folders of Path that hold a server.
func (e Environment) onPath() []string {
	var folders []string
	for _, folder := range e.Path {
		if holdsServer(folder) {
			folders = append(folders, folder)
		}
	}
	return folders
}

// byPgConfig returns the folders that a pg_config in Path names and that hold a
// server.
func (e Environment) byPgConfig(ctx context.Context) []string {
	var folders []string
	for _, folder := range e.Path {
		program := filepath.Join(folder, "pg_config")
		if !filepath.IsAbs(program) {
			continue
		}
		output, err := exec.CommandContext(ctx, program, "--bindir").Output()
		named := strings.TrimSpace(string(output))
		if err == nil && holdsServer(named) {
			folders = append(folders, named)
		}
	}
	return folders
}

// inInstalls returns the folders that match Installs and hold a server. Client packages
// use the same folders.
func (e Environment) inInstalls() []string {
	var folders []string
	for _, pattern := range e.Installs {
		matches, _ := filepath.Glob(pattern)
		for _, folder := range matches {
			if holdsServer(folder) {
				folders = append(folders, folder)
			}
		}
	}
	return folders
}

// holdsServer reports whether a folder has a file postgres, or may have one that this
// process cannot see.
func holdsServer(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "postgres"))
	return filepath.IsAbs(folder) && !errors.Is(err, fs.ErrNotExist)
}

// newest returns the usable folder with the newest version.
func newest(ctx context.Context, folders []string, as account) (string, error) {
	reasons := []error{errNoFolder}
	var best string
	var top version
	for _, folder := range folders {
		found, err := inspect(ctx, folder, as)
		if err != nil {
			reasons = append(reasons, err)
			continue
		}
		if best == "" || found.newer(top) {
			best, top = folder, found
		}
	}
	if best == "" {
		return "", errors.Join(reasons...)
	}
	return best, nil
}

// inspect runs the initdb and the postgres of a folder under the account that will use
// them. It returns the version of postgres.
func inspect(ctx context.Context, folder string, as account) (version, error) {
	if _, err := ask(ctx, filepath.Join(folder, "initdb"), as); err != nil {
		return version{}, err
	}
	program := filepath.Join(folder, "postgres")
	output, err := ask(ctx, program, as)
	if err != nil {
		return version{}, err
	}
	found, err := parseVersion(output)
	if err != nil {
		return version{}, fmt.Errorf("%q: %w", program, err)
	}
	return found, nil
}

// ask returns a program's output for --version.
func ask(ctx context.Context, program string, as account) (string, error) {
	command := exec.CommandContext(ctx, program, "--version")
	as.runAs(command)
	output, err := command.Output()
	if err != nil && ctx.Err() != nil {
		return "", fmt.Errorf("%q: %w", program, context.Cause(ctx))
	}
	if errors.Is(err, fs.ErrPermission) && as.name != "" {
		return "", fmt.Errorf("root runs PostgreSQL as user %q, which cannot access %q: %w", as.name, program, err)
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return "", fmt.Errorf("%q cannot be run: %w: %s", program, err, exit.Stderr)
	}
	if err != nil {
		return "", fmt.Errorf("%q cannot be run: %w", program, err)
	}
	return string(output), nil
}
