package library

import (
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodeFiles are package.json and its lock file, with the exact version of each package.
//
//go:embed node
var nodeFiles embed.FS

// packages installs the packages once in this process, and returns their folder.
var packages = sync.OnceValues(func() (string, error) {
	folder, err := packagesFolder()
	if err != nil {
		return "", err
	}
	return folder, install(context.Background(), folder)
})

// Node is a command that runs a script in Node.js. The script may import the libraries.
func Node(t testing.TB, script string, args ...string) *exec.Cmd {
	t.Helper()
	folder, err := packages()
	require.NoError(t, err)
	program, err := interpreter(folder)
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), program, append([]string{"--input-type=module", "-"}, args...)...)
	command.Dir = folder
	command.Stdin = strings.NewReader(script)
	return command
}

// packagesFolder is a folder in the user's cache. Its name has a hash of the files, so
// that other versions have another folder.
func packagesFolder() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := nodeFiles.ReadFile("node/" + name)
		if err != nil {
			return "", err
		}
		hash.Write(text)
	}
	return filepath.Join(cache, "leasereaper", fmt.Sprintf("queues-node-%.6x", hash.Sum(nil))), nil
}

// install installs the packages unless they are there. It works in a temporary folder and
// renames that at the end, so a process that is killed leaves no incomplete folder.
func install(ctx context.Context, folder string) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	unlock, err := lock(folder + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := os.Stat(folder); err == nil {
		return nil
	}
	work, err := os.MkdirTemp(filepath.Dir(folder), "queues-node-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := fetch(ctx, work); err != nil {
		return err
	}
	return os.Rename(work, folder)
}

// fetch runs npm ci in a folder.
func fetch(ctx context.Context, folder string) error {
	files, err := fs.Sub(nodeFiles, "node")
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, files); err != nil {
		return err
	}
	if _, err := exec.LookPath("npm"); err != nil {
		return fmt.Errorf("these tests need npm, as from apt-get install nodejs npm: %w", err)
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = folder
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("npm ci: %w: %s", err, strings.TrimSpace(string(output)))
	}
	return nil
}

// interpreter is the Node.js that npm has installed, which it does on Linux because the
// libraries need a newer one than distributions have. Elsewhere it is the system's.
func interpreter(folder string) (string, error) {
	installed, err := filepath.Glob(filepath.Join(folder, "node_modules", "node-*", "bin", "node"))
	if err != nil {
		return "", err
	}
	if len(installed) > 0 {
		return installed[0], nil
	}
	program, err := exec.LookPath("node")
	if err != nil {
		return "", errors.Join(errors.New("these tests need Node.js 22.18 or newer"), err)
	}
	return program, nil
}
