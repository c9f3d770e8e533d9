package interleave_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/reapertest"
)

// A reader takes a scenario for checked in every order that is not, or looks for one that
// is not there.
func TestThePageHasTheNumbersOfSchedules(t *testing.T) {
	t.Parallel()
	row := regexp.MustCompile("(?m)^\\| `([a-z-]+)` \\| [^|]+ \\| (\\w+) \\| (\\w+) \\|$")
	var told, known []string
	for _, match := range row.FindAllStringSubmatch(string(reapertest.Page(t, "docs/protocol.md")), -1) {
		told = append(told, strings.Join(match[1:], " "))
	}
	for _, s := range scenarios {
		known = append(known, fmt.Sprint(s.name, " ", number(s.whole), " ", number(s.cuts)))
	}
	require.Equal(t, known, told)
}

func number(n int) string {
	if n == unbounded {
		return "sampled"
	}
	return fmt.Sprint(n)
}
