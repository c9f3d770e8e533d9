package metrics_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
)

// The table in the README is what people write their queries from.
func TestTheReadmeListsEveryMetric(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	families, err := full(t, fixture.Queue(t), "send").Registry().Gather()
	require.NoError(t, err)

	var want []string
	for _, family := range families {
		if !isOurs(family.GetName()) {
			continue
		}
		var labels []string
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, "`"+pair.GetName()+"`")
		}
		slices.Sort(labels)
		want = append(want, strings.Join([]string{family.GetName(), strings.ToLower(family.GetType().String()), strings.Join(labels, " ")}, "|"))
	}
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\w+) \\| (.*?) ?\\|").FindAllStringSubmatch(string(text), -1) {
		labels := strings.FieldsFunc(row[3], func(r rune) bool { return r == ',' || r == ' ' })
		slices.Sort(labels)
		listed = append(listed, strings.Join([]string{row[1], row[2], strings.Join(labels, " ")}, "|"))
	}
	require.ElementsMatch(t, want, listed)
}

func isOurs(name string) bool {
	return strings.HasPrefix(name, "worker_") || strings.HasPrefix(name, "leasereaper_")
}
