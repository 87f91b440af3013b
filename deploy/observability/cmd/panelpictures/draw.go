package main

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
)

// What a column and a line of Grafana's grid measure here.
const (
	columnWidth = vg.Length(58)
	lineHeight  = vg.Length(26)
	columns     = 24
	margin      = vg.Length(4)
)

var (
	ink     = color.Gray{40}
	frame   = color.Gray{210}
	palette = []string{"#7EB26D", "#EAB839", "#6ED0E0", "#EF843C", "#E24D42", "#1F78C1", "#BA43A9", "#705DA0", "#508642", "#CCA300", "#447EBC", "#C15C17", "#890F02", "#0A437C", "#6D1F62", "#584477"}
	named   = map[string]string{"green": "#56A64B", "orange": "#FF780A", "red": "#E02F44"}
)

func hex(code string) color.Color {
	if name, ok := named[code]; ok {
		code = name
	}
	var c color.NRGBA
	fmt.Sscanf(code, "#%02x%02x%02x", &c.R, &c.G, &c.B)
	c.A = 255
	return c
}

func nth(i int) color.Color { return hex(palette[i%len(palette)]) }

// draw writes a picture of the dashboard, and one of each of its rows.
func (d *dashboard) draw(out, name string) error {
	name = strings.TrimSuffix(name, ".json")
	bottom, starts := 0, []int{}
	for i, p := range d.Panels {
		bottom = max(bottom, p.GridPos.Y+p.GridPos.H)
		if p.Type == "row" {
			starts = append(starts, i)
		}
	}
	if err := picture(filepath.Join(out, name+".png"), d.Panels, 0, bottom); err != nil {
		return err
	}
	for n, from := range starts {
		to := len(d.Panels)
		if n+1 < len(starts) {
			to = starts[n+1]
		}
		top, end := d.Panels[from].GridPos.Y, 0
		for _, p := range d.Panels[from:to] {
			end = max(end, p.GridPos.Y+p.GridPos.H)
		}
		if err := picture(filepath.Join(out, fmt.Sprintf("%s-%d.png", name, n+1)), d.Panels[from:to], top, end); err != nil {
			return err
		}
	}
	return nil
}

func picture(path string, panels []panel, top, bottom int) error {
	height := vg.Length(bottom-top) * lineHeight
	image := vgimg.NewWith(vgimg.UseWH(columns*columnWidth, height), vgimg.UseDPI(72), vgimg.UseBackgroundColor(color.Gray{245}))
	page := draw.New(image)
	for _, p := range panels {
		x, y := vg.Length(p.GridPos.X)*columnWidth, height-vg.Length(p.GridPos.Y-top+p.GridPos.H)*lineHeight
		p.draw(draw.Canvas{Canvas: page, Rectangle: vg.Rectangle{
			Min: vg.Point{X: x + margin, Y: y + margin},
			Max: vg.Point{X: x + vg.Length(p.GridPos.W)*columnWidth - margin, Y: y + vg.Length(p.GridPos.H)*lineHeight - margin},
		}})
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(file); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}

func style(size float64, c color.Color) draw.TextStyle {
	return text.Style{Color: c, Font: font.From(font.Font{Typeface: "Liberation", Variant: "Mono"}, vg.Length(size)), Handler: plot.DefaultTextHandler}
}

func write(c draw.Canvas, size float64, ink color.Color, x, y vg.Length, words string) {
	c.FillText(style(size, ink), vg.Point{X: x, Y: y}, words)
}

func fill(c draw.Canvas, of color.Color, r vg.Rectangle) {
	c.SetColor(of)
	c.Fill(r.Path())
}

func (p *panel) draw(c draw.Canvas) {
	if p.Type == "row" {
		write(c, 14, ink, c.Min.X, c.Min.Y+5, p.Title)
		return
	}
	fill(c, color.White, c.Rectangle)
	c.SetLineDash(nil, 0)
	c.SetLineWidth(1)
	c.SetColor(frame)
	c.Stroke(c.Rectangle.Path())
	write(c, 11, ink, c.Min.X+6, c.Max.Y-14, p.Title)
	inner := draw.Crop(c, 6, -6, 4, -20)
	switch {
	case len(p.series) == 0:
		words := "No data"
		if p.Type == "stat" {
			words = p.FieldConfig.Defaults.NoValue
		}
		write(inner, 14, color.Gray{150}, (inner.Min.X+inner.Max.X)/2-25, (inner.Min.Y+inner.Max.Y)/2, words)
	case p.Type == "stat":
		p.drawNumber(inner)
	case p.Type == "table":
		p.drawTable(inner)
	case p.Type == "heatmap":
		p.drawCells(inner)
	default:
		p.drawLines(inner)
	}
}

func (p *panel) drawNumber(c draw.Canvas) {
	for i, s := range p.series {
		of := color.Color(ink)
		if p.Options.ColorMode == "value" {
			of = hex(p.colorAt(s.last()))
		}
		write(c, 24, of, c.Min.X+6+vg.Length(i)*90, c.Min.Y+24, format(s.last(), p.unit()))
	}
}

// colorAt is the color of the highest threshold that a value has reached.
func (p *panel) colorAt(value float64) string {
	reached := "green"
	for _, t := range p.FieldConfig.Defaults.Thresholds.Steps {
		if t.Value == nil || value >= *t.Value {
			reached = t.Color
		}
	}
	return reached
}

func (p *panel) drawTable(c draw.Canvas) {
	y := c.Max.Y - 14
	for _, s := range p.series {
		var cells []string
		for label, value := range s.labels {
			cells = append(cells, label+"="+value)
		}
		slices.Sort(cells)
		write(c, 10, ink, c.Min.X+4, y, strings.Join(cells, "   ")+"   "+format(s.last(), p.unit()))
		y -= 14
	}
}

// drawCells draws the buckets of a histogram: the darker, the more fell into one.
func (p *panel) drawCells(c draw.Canvas) {
	type bucket struct {
		le float64
		of series
	}
	var buckets []bucket
	for _, s := range p.series {
		le := math.Inf(1)
		fmt.Sscan(s.labels["le"], &le)
		buckets = append(buckets, bucket{le, s})
	}
	slices.SortFunc(buckets, func(a, b bucket) int { return cmp.Compare(a.le, b.le) })
	first, last := p.span()
	below, most := map[float64]float64{}, 0.0
	var cells [][]point
	for _, b := range buckets {
		var row []point
		for _, at := range b.of.points {
			n := max(0, at.value-below[at.at])
			below[at.at], most = at.value, max(most, n)
			row = append(row, point{at.at, n})
		}
		cells = append(cells, row)
	}
	area := draw.Crop(c, 46, 0, 0, 0)
	wide := 1 // as many columns as the longest row has cells
	for _, row := range cells {
		wide = max(wide, len(row))
	}
	step := (last - first) / float64(max(1, wide-1))
	high, width := area.Size().Y/vg.Length(len(buckets)), area.Size().X/vg.Length(wide)
	for i, row := range cells {
		y := area.Min.Y + vg.Length(i)*high
		if math.IsInf(buckets[i].le, 1) {
			write(c, 8, ink, c.Min.X, y+2, "+Inf")
		} else {
			write(c, 8, ink, c.Min.X, y+2, format(buckets[i].le, p.unit()))
		}
		for _, cell := range row {
			if cell.value == 0 || most == 0 {
				continue
			}
			x := area.Min.X
			if step > 0 {
				x += vg.Length((cell.at-first)/step) * width
			}
			shade := uint8(230 - 200*math.Sqrt(cell.value/most))
			fill(c, color.NRGBA{shade, shade, 255, 255}, vg.Rectangle{
				Min: vg.Point{X: x, Y: y}, Max: vg.Point{X: x + width, Y: y + high - 0.5},
			})
		}
	}
}

// span is the time that the panel's points cover.
func (p *panel) span() (first, last float64) {
	first, last = math.Inf(1), math.Inf(-1)
	for _, s := range p.series {
		first, last = min(first, s.points[0].at), max(last, s.points[len(s.points)-1].at)
	}
	return first, last
}
