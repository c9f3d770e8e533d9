package suite

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
	"strconv"
	"strings"
)

// nodeFiles are a package of npm's: what it needs, exactly, and a script.
//
//go:embed node
var nodeFiles embed.FS

// errNoNode says that there is no Node.js here, or not what it needs.
var errNoNode = errors.New("not run")

// node runs the script.
type node struct{ folder string }

// newNode returns the script's folder in the user's cache, with what it needs. It
// asks npm for that once.
func newNode(ctx context.Context) (node, error) {
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			return node{}, fmt.Errorf("%w: %w", errNoNode, err)
		}
	}
	folder, err := nodeFolder()
	if err != nil {
		return node{}, err
	}
	done := filepath.Join(folder, "installed")
	if _, err := os.Stat(done); err == nil {
		return node{folder}, nil
	}
	if err := installNode(ctx, folder); err != nil {
		return node{}, err
	}
	return node{folder}, os.WriteFile(done, nil, 0o600)
}

// nodeFolder is another one for other files.
func nodeFolder() (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(nodeFiles, "node", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == "node" {
			return err
		}
		text, err := nodeFiles.ReadFile(path)
		hash.Write(text)
		return err
	})
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoNode, err)
	}
	return filepath.Join(cache, "leasereaper", fmt.Sprintf("bench-node-%.6x", hash.Sum(nil))), nil
}

// installNode copies the files and has npm fetch the rest, as the lock file says.
func installNode(ctx context.Context, folder string) error {
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	files, err := fs.Sub(nodeFiles, "node")
	if err != nil {
		return err
	}
	if err := os.CopyFS(folder, files); err != nil {
		return err
	}
	npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
	npm.Dir = folder
	if output, err := npm.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci: %w: %s", errNoNode, err, strings.TrimSpace(string(output)))
	}
	return nil
}

// run runs the script and returns what it printed.
func (n node) run(ctx context.Context, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "node", append([]string{"peer.mjs"}, arguments...)...)
	command.Dir = n.folder
	var complaint strings.Builder
	command.Stderr = &complaint
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("node: %w: %s", err, strings.TrimSpace(complaint.String()))
	}
	return strings.TrimSpace(string(output)), nil
}

// seconds runs the script, which prints how long something took, one figure a line.
func (n node) seconds(ctx context.Context, arguments ...string) ([]float64, error) {
	output, err := n.run(ctx, arguments...)
	if err != nil {
		return nil, err
	}
	var figures []float64
	for _, line := range strings.Fields(output) {
		figure, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, fmt.Errorf("node: %w", err)
		}
		figures = append(figures, figure)
	}
	return figures, nil
}
