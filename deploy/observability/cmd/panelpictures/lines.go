package main

import (
	"image/color"
	"math"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// axis writes a panel's values beside it.
type axis struct{ unit string }

func (a axis) Ticks(from, to float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(from, to)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = format(ticks[i].Value, a.unit)
		}
	}
	return ticks
}

// drawLines draws a time series, its legend and its thresholds.
func (p *panel) drawLines(c draw.Canvas) {
	slices.SortStableFunc(p.series, func(a, b series) int {
		if p.Options.Legend.DisplayMode != "table" {
			return 0
		}
		return int(math.Copysign(1, mean(b)-mean(a)))
	})
	area := p.drawLegend(c)

	chart := plot.New()
	for _, a := range []*plot.Axis{&chart.X, &chart.Y} {
		a.Tick.Label.Font = style(6.5, ink).Font
	}
	chart.BackgroundColor = color.Transparent
	chart.X.Tick.Marker = plot.TimeTicks{Format: "15:04:05", Time: func(t float64) time.Time { return time.Unix(int64(t), 0).UTC() }}
	chart.Y.Tick.Marker = axis{p.unit()}
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{235}, color.Gray{235}
	chart.Add(grid)

	bottom, top := 0.0, 0.0
	stacked := p.FieldConfig.Defaults.Custom.Stacking.Mode == "normal"
	below := map[float64]float64{}
	for i, s := range p.series {
		var line plotter.XYs
		for _, at := range s.points {
			value := at.value
			if stacked {
				value += below[at.at]
				below[at.at] = value
			}
			bottom, top = min(bottom, value), max(top, value)
			line = append(line, plotter.XY{X: at.at, Y: value})
		}
		drawn, err := plotter.NewLine(line)
		if err != nil {
			continue // no points
		}
		drawn.Color, drawn.Width = nth(i), 1.2
		chart.Add(drawn)
	}
	first, last := p.span()
	for _, t := range p.FieldConfig.Defaults.Thresholds.Steps {
		// Grafana shows a threshold where the axis reaches it.
		if t.Value == nil || *t.Value > 2*top {
			continue
		}
		top = max(top, *t.Value)
		drawn, err := plotter.NewLine(plotter.XYs{{X: first, Y: *t.Value}, {X: last, Y: *t.Value}})
		if err != nil {
			continue
		}
		drawn.Color, drawn.Dashes = hex(t.Color), []vg.Length{4, 3}
		chart.Add(drawn)
	}
	chart.Y.Min, chart.Y.Max = bottom*1.05, top*1.05
	if limit := p.FieldConfig.Defaults.Min; limit != nil {
		chart.Y.Min = *limit
	}
	if limit := p.FieldConfig.Defaults.Max; limit != nil {
		chart.Y.Max = *limit
	}
	if chart.Y.Max <= chart.Y.Min {
		chart.Y.Max = chart.Y.Min + 1
	}
	chart.Draw(area)
}

func mean(s series) float64 {
	total := 0.0
	for _, p := range s.points {
		total += p.value
	}
	return total / float64(len(s.points))
}

// drawLegend writes the names of the series below or beside, and gives what is left.
func (p *panel) drawLegend(c draw.Canvas) draw.Canvas {
	const line = 11
	if p.Options.Legend.DisplayMode == "table" {
		width := c.Size().X * 2 / 5
		y := c.Max.Y - line
		for i, s := range p.series {
			if y < c.Min.Y {
				write(c, 7, ink, c.Max.X-width+8, y+line-2, "…")
				break
			}
			value := "   " + format(mean(s), p.unit())
			key(c, i, c.Max.X-width+8, y, shortened(s.name, width-18-style(7, ink).Width(value))+value)
			y -= line
		}
		return draw.Crop(c, 0, -width, 0, 0)
	}
	x, y := c.Min.X, c.Min.Y+2
	for i, s := range p.series {
		width := style(7, ink).Width(s.name) + 18
		if x+width > c.Max.X && x > c.Min.X {
			x, y = c.Min.X, y+line
		}
		key(c, i, x, y, s.name)
		x += width
	}
	return draw.Crop(c, 0, 0, y+line-c.Min.Y+2, 0)
}

// shortened is as much of a name as there is room for.
func shortened(name string, room vg.Length) string {
	for whole := []rune(name); style(7, ink).Width(name) > room && len(whole) > 1; {
		whole = whole[:len(whole)-1]
		name = string(whole) + "…"
	}
	return name
}

func key(c draw.Canvas, i int, x, y vg.Length, name string) {
	fill(c, nth(i), vg.Rectangle{Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + 7, Y: y + 7}})
	write(c, 7, ink, x+10, y, name)
}
