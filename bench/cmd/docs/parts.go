package main

import (
	"image/color"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// A bar lies at y, moved by an offset.
type bar struct {
	y, from, to float64
	offset      vg.Length
	color       color.Color
}

func (b *bar) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	middle, half := y(b.y)+b.offset, vg.Points((barRoom-6)/2)
	c.FillPolygon(b.color, []vg.Point{
		{X: x(b.from), Y: middle - half}, {X: x(b.to), Y: middle - half}, {X: x(b.to), Y: middle + half}, {X: x(b.from), Y: middle + half},
	})
}

// A swatch is a colour in a legend.
type swatch struct{ color color.Color }

func (s swatch) Thumbnail(c *draw.Canvas) {
	c.SetColor(s.color)
	c.Fill(c.Rectangle.Path())
}

// grouped writes the numbers at the ticks as tables do.
type grouped struct{ plot.Ticker }

func (g grouped) Ticks(from, to float64) []plot.Tick {
	ticks := g.Ticker.Ticks(from, to)
	for i, t := range ticks {
		if t.Label != "" {
			ticks[i].Label = group(strconv.FormatFloat(t.Value, 'f', -1, 64))
		}
	}
	return ticks
}

// number writes a value to three digits or more, thousands apart.
func number(value float64) string {
	switch {
	case value >= 99.95 || value <= -99.95 || value == 0:
		return group(strconv.FormatFloat(value, 'f', 0, 64))
	case value >= 9.995:
		return strconv.FormatFloat(value, 'f', 1, 64)
	}
	return strconv.FormatFloat(value, 'f', 2, 64)
}

// group puts a comma after each thousand.
func group(digits string) string {
	whole, rest, _ := strings.Cut(digits, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		rest = "." + rest
	}
	return sign + whole + rest
}
