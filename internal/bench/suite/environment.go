package suite

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/lease-governance/leasereaper/internal/bench/bed"
)

// Environment tells where a run measures: the machine, and the versions and settings of
// what it measures with.
func (env *Env) Environment(ctx context.Context) ([]bed.Setting, error) {
	server, err := env.Server.Settings(ctx)
	if err != nil {
		return nil, err
	}
	peers, err := nodeVersions()
	if err != nil {
		return nil, err
	}
	machine := []bed.Setting{
		{Name: "processors", Value: fmt.Sprintf("%d, %s", runtime.NumCPU(), processor())},
		{Name: "system", Value: runtime.GOOS + "/" + runtime.GOARCH},
		{Name: "Go", Value: runtime.Version()},
	}
	return slices.Concat(machine, moduleVersions(), peers, server), nil
}

// moduleVersions are those of the Go modules that matter.
func moduleVersions() []bed.Setting {
	info, _ := debug.ReadBuildInfo()
	var list []bed.Setting
	for _, module := range info.Deps {
		if module.Path == "github.com/jackc/pgx/v5" || module.Path == "github.com/riverqueue/river" {
			list = append(list, bed.Setting{Name: module.Path, Value: module.Version})
		}
	}
	return list
}

// nodeVersions are those of the npm packages.
func nodeVersions() ([]bed.Setting, error) {
	text, err := nodeFiles.ReadFile("node/package.json")
	if err != nil {
		return nil, err
	}
	var needs struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(text, &needs); err != nil {
		return nil, err
	}
	return []bed.Setting{
		{Name: pgBoss.name, Value: needs.Dependencies[pgBoss.name]},
		{Name: graphileWorker.name, Value: needs.Dependencies[graphileWorker.name]},
	}, nil
}

// processor is the model that Linux tells of.
func processor() string {
	file, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer func() { _ = file.Close() }()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
