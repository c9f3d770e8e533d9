package console

import (
	"fmt"
	"html/template"
	"strings"
)

// Charts are SVG. Their colours come from the stylesheet, and a chart's label has in
// words what it shows.

// bar is a horizontal bar of n out of most. It is made of numbers alone.
func bar(n, most int) template.HTML {
	const width = 120
	filled := 0
	if most > 0 {
		filled = max(1, n*width/most)
	}
	return template.HTML(fmt.Sprintf(
		`<svg class="bar" viewBox="0 0 %d 10" width="%d" height="10" aria-hidden="true">`+
			`<rect class="track" width="%d" height="10" rx="2"/>`+
			`<rect class="fill" width="%d" height="10" rx="2"/></svg>`,
		width, width, width, filled))
}

// chartMinutes is how far ahead the chart of expiries looks.
const chartMinutes = 30

// expiryChart shows how many leases expire in each of the next minutes.
func expiryChart(expiries []expiry) template.HTML {
	var minutes [chartMinutes]int
	within := 0
	for _, e := range expiries {
		if m := int(e.Seconds) / 60; m >= 0 && m < chartMinutes {
			minutes[m]++
			within++
		}
	}
	label := fmt.Sprintf("%d leases expire within %d minutes unless their workers renew them; most in one minute: %d",
		within, chartMinutes, largest(minutes[:]))
	return columns(label, "one column for each minute from now", minutes[:], nil)
}

// passChart shows resets and moves of the last passes, oldest first.
func passChart(passes []pass) template.HTML {
	resets, moves := make([]int, len(passes)), make([]int, len(passes))
	for i, p := range passes {
		at := len(passes) - 1 - i
		resets[at], moves[at] = p.Resets, p.Moves
	}
	label := fmt.Sprintf("resets and moves of the last %d passes; most in one pass: %d reset, %d moved",
		len(passes), largest(resets), largest(moves))
	return columns(label, "oldest pass left, newest right; moves stand on resets", resets, moves)
}

func largest(values []int) int {
	most := 0
	for _, v := range values {
		most = max(most, v)
	}
	return most
}

// columns draws a column for each value, with a second part on top where there is one.
func columns(label, caption string, values, onTop []int) template.HTML {
	const width, height, gap = 600, 80, 2
	most := 1
	for i, v := range values {
		if onTop != nil {
			v += onTop[i]
		}
		most = max(most, v)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<figure><svg class="columns" viewBox="0 0 %d %d" preserveAspectRatio="none" role="img" `+
		`aria-label="%s">`, width, height+1, template.HTMLEscapeString(label))
	fmt.Fprintf(&b, `<rect class="track" y="%d" width="%d" height="1"/>`, height, width)
	step := float64(width) / float64(max(1, len(values)))
	for i, v := range values {
		tall := column(&b, "fill", float64(i)*step, step-gap, 0, v, most)
		if onTop != nil {
			column(&b, "move", float64(i)*step, step-gap, tall, onTop[i], most)
		}
	}
	fmt.Fprintf(&b, `</svg><figcaption>%s. %s.</figcaption></figure>`,
		capital(label), capital(caption))
	return template.HTML(b.String()) // numbers, and texts that are escaped
}

// capital is a text as a sentence begins.
func capital(text string) string {
	return template.HTMLEscapeString(strings.ToUpper(text[:1]) + text[1:])
}

// column draws one part of a column, and returns where the next begins.
func column(b *strings.Builder, class string, x, width, below float64, value, most int) float64 {
	const height = 80
	if value == 0 {
		return below
	}
	tall := max(1.5, float64(value)*height/float64(most))
	fmt.Fprintf(b, `<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f"/>`,
		class, x, height-below-tall, max(1, width), tall)
	return below + tall
}

// firstExpiries are those that the table shows.
func firstExpiries(expiries []expiry) []expiry {
	return expiries[:min(len(expiries), expiriesShown)]
}
