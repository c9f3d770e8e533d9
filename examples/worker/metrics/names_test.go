package metrics_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
)

// exported is what a worker exports: each name that can stand in a query, with the
// labels it has.
func exported(t *testing.T) map[string][]string {
	t.Helper()
	families, err := full(t, fixture.Queue(t), "send").Registry().Gather()
	require.NoError(t, err)
	names := map[string][]string{}
	for _, family := range families {
		labels := []string{"instance", "job"} // which Prometheus adds
		for _, pair := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, pair.GetName())
		}
		if family.GetType() != dto.MetricType_HISTOGRAM {
			names[family.GetName()] = labels
			continue
		}
		names[family.GetName()+"_bucket"] = append(slices.Clone(labels), "le")
		names[family.GetName()+"_sum"] = labels
		names[family.GetName()+"_count"] = labels
	}
	return names
}

// dashboard is the part of it that the test reads.
type dashboard struct {
	Panels []struct {
		Title       string
		Description string
		Type        string
		GridPos     struct{ X, Y, W, H int }
		Targets     []struct{ Expr string }
	}
}

// A panel that asks for a metric which was renamed stays empty, and an empty panel
// looks like a queue without trouble.
func TestTheDashboardAsksForWhatIsExported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../dashboard.json")
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	names := exported(t)

	asked := map[string]bool{}
	for _, panel := range d.Panels {
		if panel.Type != "row" {
			require.NotEmpty(t, panel.Targets, panel.Title)
			require.NotEmpty(t, panel.Description, panel.Title)
		}
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		for _, target := range panel.Targets {
			for _, name := range requireExported(t, names, target.Expr) {
				asked[name] = true
			}
		}
	}
	for name := range names {
		if isOurs(name) && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			require.True(t, asked[name], "the dashboard does not show %s", name)
		}
	}
}

// An alert on a metric that is not there never fires.
func TestTheAlertsAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	expressions := regexp.MustCompile(`(?m)^ *expr: (.*)$`).FindAllStringSubmatch(string(text), -1)
	require.Len(t, expressions, 8)
	names := exported(t)
	for _, expression := range expressions {
		require.NotEmpty(t, requireExported(t, names, expression[1]), expression[1])
	}
}

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

// requireExported returns the metrics that a query asks for, and wants each of
// them, and each label, to be exported.
func requireExported(t *testing.T, names map[string][]string, query string) []string {
	t.Helper()
	metrics, labels := parse(query)
	known := map[string]bool{}
	for _, name := range metrics {
		require.Contains(t, names, name, query)
		for _, label := range names[name] {
			known[label] = true
		}
	}
	for _, label := range labels {
		require.True(t, known[label], "label %q in %s", label, query)
	}
	return metrics
}

var (
	quoted    = regexp.MustCompile(`"[^"]*"`)
	ranges    = regexp.MustCompile(`\[[^\]]*\]`)
	matchers  = regexp.MustCompile(`\{([^}]*)\}`)
	groupings = regexp.MustCompile(`\b(?:by|without|on|ignoring) *\(([^)]*)\)`)
	words     = regexp.MustCompile(`[a-zA-Z_:][\w:]*( *\()?`)
)

// parse splits a query into the names of metrics and of labels. Of PromQL it knows
// as much as the queries here use; what it does not know it takes for a metric,
// which is then not found.
func parse(query string) (metrics, labels []string) {
	query = ranges.ReplaceAllString(quoted.ReplaceAllString(query, ""), "")
	for _, list := range []*regexp.Regexp{matchers, groupings} {
		for _, match := range list.FindAllStringSubmatch(query, -1) {
			labels = append(labels, words.FindAllString(match[1], -1)...)
		}
		query = list.ReplaceAllString(query, "")
	}
	for _, word := range words.FindAllString(query, -1) {
		if !strings.HasSuffix(word, "(") && word != "and" {
			metrics = append(metrics, word)
		}
	}
	return metrics, labels
}

// The parser itself could let everything pass.
func TestParseFindsMetricsAndLabels(t *testing.T) {
	t.Parallel()
	metrics, labels := parse(`sum by (le, kind) (rate(a_total{x="b_total", y=~"c|d"}[5m])) * 60 and on () max(e) > 3`)
	require.Equal(t, []string{"a_total", "e"}, metrics)
	require.Equal(t, []string{"x", "y", "le", "kind"}, labels)
}
