package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/lease-governance/leasereaper/internal/bench/plot"
)

// line is a line through figures at the sizes 10, 100, 1000...
func line(name string, figures ...float64) plot.Line {
	l, x := plot.Line{Name: name}, 10.0
	for _, y := range figures {
		l.Points = append(l.Points, plot.Point{X: x, Y: y, Low: y * 0.9, High: y * 1.1})
		x *= 10
	}
	return l
}

func draw(t *testing.T, lines ...plot.Line) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, plot.Draw(&out, plot.Chart{Title: "A <title>", X: "size", Y: "figure", Lines: lines}))
	return out.String()
}

// A browser shows nothing at all of an SVG that is not well-formed.
func TestAChartIsWellFormed(t *testing.T) {
	t.Parallel()
	decoder := xml.NewDecoder(strings.NewReader(draw(t, line("a & b", 1, 2, 3), line("c", 4))))

	for {
		_, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
	}
}

// Figures that cannot be read off are no figures: round steps, and no more of them
// than have room.
func TestTheAxisHasRoundNumbers(t *testing.T) {
	t.Parallel()

	tests := map[string]struct {
		highest float64
		want    []string
	}{
		"thousands":              {90_000, []string{"0", "20,000", "40,000", "60,000", "80,000", "100,000"}},
		"millions":               {4_400_000, []string{"0", "1,000,000", "2,000,000", "3,000,000", "4,000,000", "5,000,000"}},
		"ones":                   {7, []string{"0", "1", "2", "3", "4", "5", "6", "7", "8"}},
		"fractions without dust": {1.3, []string{"0", "0.2", "0.4", "0.6", "0.8", "1", "1.2", "1.4", "1.6"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			svg := draw(t, line("a", test.highest))
			require.Equal(t, test.want, labels(svg, `text-anchor="end">`))
		})
	}
}

// Each size that was measured is named, in order, also when lines differ in it.
func TestTheSizesAreNamed(t *testing.T) {
	t.Parallel()

	svg := draw(t, line("a", 1), line("b", 1, 1, 1, 1))

	require.Equal(t, []string{"10", "100", "1,000", "10,000"}, labels(svg, `dy="20" text-anchor="middle">`))
}

// labels returns the texts that follow a mark.
func labels(svg, mark string) []string {
	var texts []string
	for _, rest := range strings.Split(svg, mark)[1:] {
		text, _, _ := strings.Cut(rest, "<")
		texts = append(texts, text)
	}
	return texts
}

// A chart in the dark is read by people too.
func TestAChartHasColorsForTheDark(t *testing.T) {
	t.Parallel()

	require.Contains(t, draw(t, line("a", 1)), "prefers-color-scheme: dark")
}

// A scenario that measured nothing must not leave an empty picture behind.
func TestAChartWithoutPointsIsAnError(t *testing.T) {
	t.Parallel()

	for name, lines := range map[string][]plot.Line{
		"no line":        nil,
		"an empty line":  {line("a")},
		"only zeros":     {line("a", 0, 0)},
		"lines of zeros": {line("a", 0), line("b", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Error(t, plot.Draw(io.Discard, plot.Chart{Lines: lines}))
		})
	}
}

// A time axis that names each of sixty minutes cannot be read, and a logarithmic one makes
// the last minutes look like nothing.
func TestALinearAxisHasRoundTimes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	minutes := plot.Line{Name: "a"}
	for x := range 61 {
		minutes.Points = append(minutes.Points, plot.Point{X: float64(x), Y: 1})
	}

	require.NoError(t, plot.Draw(&out, plot.Chart{
		Linear: true, Lines: []plot.Line{minutes}, Band: &plot.Band{From: 15, To: 45, Name: "a <band>"},
	}))

	require.Equal(t, []string{"0", "10", "20", "30", "40", "50", "60"}, labels(out.String(), `dy="20" text-anchor="middle">`))
	require.Contains(t, out.String(), `<rect class="band" x="232.0" y="72" width="296.0" height="264.0"/>`)
	require.Contains(t, out.String(), "a &lt;band&gt;")
}
