package alertstest_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/examples/worker/internal/fixture"
	"github.com/lease-governance/leasereaper/examples/worker/jobs"
	"github.com/lease-governance/leasereaper/examples/worker/service"
)

// exported lists the series that a worker exports when it has just started.
func exported(t *testing.T) []labels.Labels {
	t.Helper()
	s, err := service.New(fixture.Queue(t), service.Config{Handlers: jobs.Handlers()})
	require.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, listener) }()
	defer func() {
		stop()
		require.NoError(t, <-ended)
	}()

	status, text := fixture.Get(t, "http://"+listener.Addr().String()+"/metrics")
	require.Equal(t, 200, status, text)
	var all []labels.Labels
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			set, err := promQL.ParseMetric(line[:strings.LastIndex(line, " ")])
			require.NoError(t, err)
			all = append(all, set)
		}
	}
	return all
}

// requireExported wants each selector of a query to find a series from the worker's
// start on, and each label that it groups by to be on one. It returns the names.
func requireExported(t *testing.T, series []labels.Labels, query string) (names []string) {
	t.Helper()
	expr, err := promQL.ParseExpr(query)
	require.NoError(t, err, query)
	known := map[string]bool{"job": true, "instance": true} // which Prometheus adds
	var grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch node := node.(type) {
		case *parser.VectorSelector:
			found := false
			for _, set := range series {
				if matches(set, node.LabelMatchers) {
					found = true
					set.Range(func(l labels.Label) { known[l.Name] = true })
				}
			}
			require.True(t, found, "no worker exports %s, in %s", node, query)
			names = append(names, node.Name)
		case *parser.AggregateExpr:
			grouped = append(grouped, node.Grouping...)
		}
		return nil
	})
	for _, label := range grouped {
		require.True(t, known[label], "label %q in %s", label, query)
	}
	return names
}

// An alert on a metric, a label or an outcome that was renamed never fires.
func TestTheAlertsAskForWhatIsExported(t *testing.T) {
	t.Parallel()
	series := exported(t)
	for _, rule := range rules(t) {
		require.NotEmpty(t, requireExported(t, series, rule.Expr), rule.Alert)
	}
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
	series := exported(t)

	shown := map[string]bool{}
	for _, panel := range d.Panels {
		if panel.Type != "row" {
			require.NotEmpty(t, panel.Targets, panel.Title)
			require.NotEmpty(t, panel.Description, panel.Title)
		}
		require.LessOrEqual(t, panel.GridPos.X+panel.GridPos.W, 24, panel.Title)
		for _, target := range panel.Targets {
			for _, name := range requireExported(t, series, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m")) {
				shown[name] = true
			}
		}
	}
	for _, set := range series {
		name := set.Get(model.MetricNameLabel)
		if isOurs(name) && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			require.True(t, shown[name], "the dashboard does not show %s", name)
		}
	}
}

func isOurs(name string) bool {
	return strings.HasPrefix(name, "worker_") || strings.HasPrefix(name, "leasereaper_")
}

// The README is where people look for an alert's name.
func TestTheReadmeListsEachAlert(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	var listed []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, row[1])
	}
	var want []string
	for _, rule := range rules(t) {
		want = append(want, rule.Alert)
	}
	require.Equal(t, want, listed)
}
