package alertstest_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"
)

// promQL is what Prometheus itself reads queries with.
var promQL = parser.NewParser(parser.Options{})

// rules reads the file as Prometheus does.
func rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	groups, faults := rulefmt.ParseFile("../alerts.yaml", false, model.UTF8Validation, promQL, promslog.NewNopLogger())
	require.Empty(t, faults)
	var all []rulefmt.Rule
	for _, group := range groups.Groups {
		all = append(all, group.Rules...)
	}
	require.NotEmpty(t, all)
	return all
}

const runBook = "https://github.com/lease-governance/leasereaper/blob/main/docs/operations.md#"

// Somebody who is woken up needs to know how bad it is, what it means and what to do. A
// link to a chapter that was renamed ends at the top of a long page.
func TestEachAlertSaysWhatItMeansAndWhatToDo(t *testing.T) {
	t.Parallel()
	chapters := chaptersOf(t, "../../../docs/operations.md")
	names := map[string]bool{}
	for _, rule := range rules(t) {
		require.False(t, names[rule.Alert], "two rules are named %s", rule.Alert)
		names[rule.Alert] = true
		require.NotZero(t, rule.For, rule.Alert)
		require.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		require.NotEmpty(t, rule.Annotations["description"], rule.Alert)
		chapter, ok := strings.CutPrefix(rule.Annotations["runbook_url"], runBook)
		require.True(t, ok, "%s has no link to the run book", rule.Alert)
		require.Contains(t, chapters, chapter, rule.Alert)
	}
}

var (
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped  = regexp.MustCompile(`[^a-z0-9 -]`)
)

// chaptersOf lists the anchors of a document's headings.
func chaptersOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var anchors []string
	for _, heading := range headings.FindAllStringSubmatch(string(text), -1) {
		plain := dropped.ReplaceAllString(strings.ToLower(heading[1]), "")
		anchors = append(anchors, strings.ReplaceAll(plain, " ", "-"))
	}
	return anchors
}
