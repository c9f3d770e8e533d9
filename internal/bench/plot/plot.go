// Package plot draws line charts as SVG: sizes on a logarithmic axis or times on a linear
// one, and figures on a linear one. Linear axes begin at zero. The charts bring their own
// background, and follow their reader into the dark.
package plot

import (
	_ "embed"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/template"
)

// Chart is what to draw.
type Chart struct {
	Title string
	X, Y  string // titles of the axes, with their units
	Lines []Line
	// Linear has a linear X axis, and lines without marks at their points.
	Linear bool
	// Band is a part of the X axis to shade. Nil is none.
	Band *Band
}

// Band is a part of the X axis, and what it is.
type Band struct {
	From, To float64
	Name     string
}

// Line is one line of a chart. The first four have colors of their own.
type Line struct {
	Name   string
	Points []Point
}

// Point is a figure, and the range around it that is drawn as a bar.
type Point struct {
	X         float64 // positive, if the axis is logarithmic
	Y         float64
	Low, High float64
}

//go:embed chart.svg.tmpl
var source string

var chart = template.Must(template.New("chart").Parse(source))

// Draw writes the chart. One without points is an error.
func Draw(out io.Writer, c Chart) error {
	scale, err := scaleOf(c)
	if err != nil {
		return fmt.Errorf("plot: %q: %w", c.Title, err)
	}
	return chart.Execute(out, view(c, scale))
}

// picture is a chart in the template's terms: texts, and places in pixels.
type picture struct {
	Title, X, Y                    string
	Left, Right, Top, Bottom       int
	MiddleX, MiddleY               int
	Columns, Rows                  []tick
	Lines                          []line
	Band                           *band
	Width, Height, LegendY, TitleY int
}

type tick struct {
	At   string
	Text string
}

type line struct {
	Class         string
	Name          string
	Path          string
	Bars          []bar
	KeyX, KeyEnd  int
	KeyMid, TextX int
}

type band struct{ X, Width, Height, Middle, Name string }

type bar struct{ X, Y, Low, High string }

func view(c Chart, s scale) picture {
	p := picture{
		Title: c.Title, X: c.X, Y: c.Y,
		Width: width, Height: height, TitleY: 26, LegendY: 52,
		Left: left, Right: right, Top: top, Bottom: bottom,
		MiddleX: (left + right) / 2, MiddleY: (top + bottom) / 2,
	}
	for _, x := range s.columns() {
		p.Columns = append(p.Columns, tick{pixel(s.x(x)), number(x)})
	}
	for i := range int(math.Round(s.most/s.step)) + 1 {
		y := float64(i) * s.step
		p.Rows = append(p.Rows, tick{pixel(s.y(y)), number(y)})
	}
	if c.Band != nil {
		from, to := s.x(c.Band.From), s.x(c.Band.To)
		p.Band = &band{pixel(from), pixel(to - from), pixel(bottom - top), pixel((from + to) / 2), c.Band.Name}
	}
	at := left
	for i, l := range c.Lines {
		p.Lines = append(p.Lines, draw(l, s, i, at))
		at += keyWidth + 8*len(l.Name) + 24
	}
	return p
}

// draw draws a line, and its key in the legend, which begins at a place.
func draw(l Line, s scale, i, at int) line {
	drawn := line{
		Class: fmt.Sprintf("line%d", i), Name: l.Name,
		KeyX: at, KeyEnd: at + keyWidth - 8, KeyMid: at + keyWidth/2 - 4, TextX: at + keyWidth,
	}
	var path strings.Builder
	for j, point := range l.Points {
		command := "L"
		if j == 0 {
			command = "M"
		}
		x, y := pixel(s.x(point.X)), pixel(s.y(point.Y))
		path.WriteString(command + x + " " + y + " ")
		if !s.linear {
			drawn.Bars = append(drawn.Bars, bar{x, y, pixel(s.y(point.Low)), pixel(s.y(point.High))})
		}
	}
	drawn.Path = strings.TrimSpace(path.String())
	return drawn
}

func pixel(at float64) string { return fmt.Sprintf("%.1f", at) }

// number writes a figure with a comma at the thousands, and without the dust of
// binary fractions.
func number(value float64) string {
	text := strconv.FormatFloat(math.Round(value*1e6)/1e6, 'f', -1, 64)
	whole, _, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
