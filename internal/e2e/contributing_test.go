package e2e_test

import (
	osexec "os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// module is the path that every package of the library begins with.
const module = "github.com/lease-governance/leasereaper/"

// A newcomer reads the picture of the packages, and puts an import where none may be.
func TestThePictureOfThePackagesIsTrue(t *testing.T) {
	t.Parallel()
	require.Equal(t, imports(t), drawn(t))
}

// imports are the arrows between the module's packages, by their last names.
func imports(t *testing.T) []string {
	t.Helper()
	out, err := osexec.CommandContext(t.Context(), "go", "list", "-C", "../..", "-f", `{{$from := .ImportPath}}{{range .Imports}}{{$from}} {{.}}
{{end}}`, "./...").Output()
	require.NoError(t, err)
	var arrows []string
	for line := range strings.Lines(string(out)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(to, module) {
			arrows = append(arrows, path.Base(from)+" --> "+path.Base(to))
		}
	}
	slices.Sort(arrows)
	return arrows
}

// drawn are the arrows of CONTRIBUTING.md.
func drawn(t *testing.T) []string {
	t.Helper()
	page := reapertest.Page(t, "CONTRIBUTING.md")
	var arrows []string
	for _, match := range regexp.MustCompile(`(?m)^ +(\w+)(?:\[.*?\])? --> (\w+)`).FindAllStringSubmatch(string(page), -1) {
		arrows = append(arrows, match[1]+" --> "+match[2])
	}
	slices.Sort(arrows)
	return arrows
}
