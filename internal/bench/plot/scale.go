package plot

import (
	"errors"
	"math"
	"slices"
)

// The drawing, in pixels.
const (
	width, height = 700, 400
	left, right   = 84, 676
	top, bottom   = 72, 336
	keyWidth      = 40
)

var errEmpty = errors.New("there is nothing to draw")

// scale turns sizes and figures into places.
type scale struct {
	xs         []float64 // each size there is
	step, most float64   // of the figures' axis
	linear     bool
}

func scaleOf(c Chart) (scale, error) {
	s := scale{linear: c.Linear}
	highest := 0.0
	for _, l := range c.Lines {
		for _, point := range l.Points {
			s.xs = append(s.xs, point.X)
			highest = max(highest, point.Y, point.High)
		}
	}
	if len(s.xs) == 0 || highest <= 0 {
		return s, errEmpty
	}
	slices.Sort(s.xs)
	s.xs = slices.Compact(s.xs)
	s.step = step(highest)
	s.most = math.Ceil(highest/s.step) * s.step
	return s, nil
}

// step is the round number that divides a range into four to eight.
func step(highest float64) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(highest/4)))
	for _, factor := range []float64{5, 2} {
		if highest/(factor*unit) >= 4 {
			return factor * unit
		}
	}
	return unit
}

// columns are the places that are named on the X axis.
func (s scale) columns() []float64 {
	if !s.linear {
		return s.xs
	}
	var list []float64
	last := s.xs[len(s.xs)-1]
	for i, each := 0, step(last); float64(i)*each <= last; i++ {
		list = append(list, float64(i)*each)
	}
	return list
}

func (s scale) x(value float64) float64 {
	if s.linear {
		return left + value/s.xs[len(s.xs)-1]*(right-left)
	}
	first, last := math.Log(s.xs[0]), math.Log(s.xs[len(s.xs)-1])
	if first == last {
		return (left + right) / 2
	}
	const margin = 24 // beside the outermost points
	return left + margin + (math.Log(value)-first)/(last-first)*(right-left-2*margin)
}

func (s scale) y(value float64) float64 {
	return bottom - value/s.most*(bottom-top)
}
