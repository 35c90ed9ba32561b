package main

import (
	"bytes"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// A chart is drawn from the records of one workload: a bar for each of them and each figure, or a line for each figure over an along.
type chart struct {
	file, workload string
	title, unit    string
	figures        []series
	along          string // the figure that is the horizontal axis of lines; "" means bars
	alongTitle     string
	logarithmic    bool // the values' axis
}

type series struct{ figure, label string }

var rate = []series{{"rate", ""}}

var charts = []chart{
	{file: "w1", workload: "W1", title: "Drain of messages that are there already", unit: "messages a second", figures: rate},
	{file: "w2", workload: "W2", title: "Four producers, one message a transaction, and a sender", unit: "messages a second", figures: rate},
	{file: "w3", workload: "W3", title: "From commit to the start of the handler, at 300 a second", unit: "milliseconds (logarithmic)", logarithmic: true,
		figures: []series{{"p50_ms", "median"}, {"p95_ms", "p95"}, {"p99_ms", "p99"}}},
	{file: "w4", workload: "W4", title: "Drain beside an old snapshot", unit: "messages a second", figures: rate},
	{file: "w5", workload: "W5", title: "Drain beside deferred and delivered messages", unit: "messages a second", figures: rate},
	{file: "w6", workload: "W6", title: "A lease of 500 by what waits", unit: "milliseconds", along: "backlog", alongTitle: "messages that are due",
		figures: []series{{"p50_ms", "median"}, {"p99_ms", "p99"}}},
	{file: "w7", workload: "W7", title: "Drain by number of tenants", unit: "messages a second", figures: rate},
	{file: "w8", workload: "W8", title: "Drain by number of sender processes", unit: "messages a second", figures: rate},
	{file: "w9", workload: "W9", title: "Drain by size of payload", unit: "messages a second", figures: rate},
	{file: "w10", workload: "W10", title: "Drain by size of batch", unit: "messages a second", figures: rate, along: "batch", alongTitle: "messages a lease"},
	{file: "w11", workload: "W11", title: "A lease while the janitor purges", unit: "milliseconds",
		figures: []series{{"p50_ms", "median"}, {"p95_ms", "p95"}}},
	{file: "w12", workload: "W12", title: "Peak memory of a process that only sends", unit: "MB", figures: []series{{"peak_mb", ""}}},
	{file: "w13", workload: "W13", title: "Drain by driver", unit: "messages a second", figures: rate},
}

const (
	width   = 18 * vg.Centimeter
	barRoom = 22 // points for each bar
)

var (
	face  = font.Font{Typeface: "Liberation", Variant: "Sans"}
	ink   = color.RGBA{0x1f, 0x23, 0x28, 0xff}
	faint = color.RGBA{0xd0, 0xd7, 0xde, 0xff}
	ours  = color.RGBA{0x1f, 0x6f, 0xeb, 0xff}
	// hues tell figures apart, palest first.
	hues = []color.Color{color.RGBA{0x9e, 0xc5, 0xfe, 0xff}, color.RGBA{0x4f, 0x94, 0xf0, 0xff}, color.RGBA{0x0b, 0x3d, 0x91, 0xff}}
	// theirs is of bars that are not fencepost's.
	theirs = color.RGBA{0x9a, 0xa4, 0xb0, 0xff}
)

// draw gives the SVG, or nil where no run has the workload. Its ground is white, so that it reads the same on a page of any colour.
func (c chart) draw(all *results) ([]byte, error) {
	records := slices.DeleteFunc(all.of(c.workload), func(r record) bool { _, ok := r.figures[c.figures[0].figure]; return !ok })
	if len(records) == 0 {
		return nil, nil
	}
	p, height, err := c.plot(records)
	if err != nil {
		return nil, err
	}
	canvas := vgsvg.New(width, height)
	paint(p, canvas)
	var out bytes.Buffer
	if _, err := canvas.WriteTo(&out); err != nil {
		return nil, err
	}
	// Who has not got the font that was measured with takes one that is as wide.
	return bytes.ReplaceAll(out.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

func paint(p *plot.Plot, canvas vg.CanvasSizer) {
	all := draw.New(canvas)
	all.SetColor(color.White)
	all.Fill(all.Rectangle.Path())
	p.Draw(draw.Crop(all, 10, -16, 8, -8))
}

func (c chart) plot(records []record) (p *plot.Plot, height vg.Length, err error) {
	plot.DefaultFont, plotter.DefaultFont = face, face
	p = plot.New()
	p.Title.Text, p.Title.TextStyle.Font.Size, p.Title.Padding = c.title, 13, 8
	p.BackgroundColor = color.White
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.TextStyle.Color, axis.Tick.Label.Color, axis.Color, axis.Tick.Color = ink, ink, ink, ink
		axis.Label.TextStyle.Font.Size = 11
	}
	if c.along != "" {
		return p, 9 * vg.Centimeter, c.lines(p, records)
	}
	return p, vg.Points(float64(90 + barRoom*len(records)*len(c.figures) + 8*len(records))), c.bars(p, records)
}

// bars lie, the first record on top, each with its value at its end.
func (c chart) bars(p *plot.Plot, records []record) error {
	n := len(records)
	names := labels(records)
	slices.Reverse(names)
	var most float64
	least := math.Inf(1)
	for _, r := range records {
		for _, s := range c.figures {
			most, least = max(most, r.figures[s.figure]), min(least, r.figures[s.figure])
		}
	}
	p.NominalY(names...)
	several := float64(min(len(c.figures)-1, 1)) // figures have a legend, right of the bars
	p.X.Label.Text, p.X.Min, p.X.Max = c.unit, 0, (1.14+0.2*several)*most
	p.X.Tick.Marker = grouped{plot.DefaultTicks{}}
	if c.logarithmic {
		p.X.Scale, p.X.Min = plot.LogScale{}, least/2
		p.X.Max = 1.5 * most * math.Pow(most/p.X.Min, 0.3*several)
		p.X.Tick.Marker = grouped{plot.LogTicks{Prec: -1}}
	}
	p.Y.Min, p.Y.Max = -0.5, float64(n)-0.5
	grid := plotter.NewGrid()
	grid.Horizontal.Width, grid.Vertical.Color = 0, faint
	p.Add(grid)
	for k, s := range c.figures {
		offset := vg.Points(float64(barRoom-4) * (float64(len(c.figures)-1)/2 - float64(k)))
		label := plotter.XYLabels{}
		for i, r := range records {
			y, value := float64(n-1-i), r.figures[s.figure]
			p.Add(&bar{y: y, from: p.X.Min, to: value, offset: offset, color: c.hue(k, r)})
			label.XYs, label.Labels = append(label.XYs, plotter.XY{X: value, Y: y}), append(label.Labels, number(value))
		}
		labels, err := plotter.NewLabels(label)
		if err != nil {
			return err
		}
		for i := range labels.TextStyle {
			labels.TextStyle[i].Color, labels.TextStyle[i].YAlign = ink, draw.YCenter
		}
		labels.Offset = vg.Point{X: 4, Y: offset}
		p.Add(labels)
		if s.label != "" {
			p.Legend.Add(s.label, swatch{hues[k]})
		}
	}
	p.Legend.Top, p.Legend.Padding, p.Legend.TextStyle.Font.Size = true, 3, 10
	return nil
}

// hue tells fencepost's bars from the others', or else the figures apart.
func (c chart) hue(figure int, r record) color.Color {
	switch {
	case len(c.figures) > 1:
		return hues[figure]
	case r.peer == fencepost:
		return ours
	}
	return theirs
}

func (c chart) lines(p *plot.Plot, records []record) error {
	p.X.Label.Text, p.Y.Label.Text = c.alongTitle, c.unit
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, grouped{plot.LogTicks{Prec: -1}}
	p.Y.Tick.Marker = grouped{plot.DefaultTicks{}}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	for k, s := range c.figures {
		points := make(plotter.XYs, len(records))
		for i, r := range records {
			points[i] = plotter.XY{X: r.figures[c.along], Y: r.figures[s.figure]}
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return err
		}
		line.Color, line.Width = hues[k+1], 2
		dots.Color, dots.Shape, dots.Radius = hues[k+1], draw.CircleGlyph{}, 3
		p.Add(line, dots)
		if s.label != "" {
			p.Legend.Add(s.label, line, dots)
		}
	}
	p.Legend.Top, p.Legend.Left, p.Legend.XOffs = true, true, 8
	p.Legend.Padding, p.Legend.TextStyle.Font.Size = 3, 10
	p.Y.Min, p.Y.Max = 0, 1.15*p.Y.Max
	return nil
}
