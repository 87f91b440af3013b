package dashboards

import (
	"cmp"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// display is how a panel shows its series. The zero value is lines over time.
type display string

const (
	stacked display = "stacked"
	number  display = "number"  // the last value, large
	heat    display = "heatmap" // of one query over buckets
	columns display = "table"   // of one query's labels
)

// query is one expression of a panel, with what names its series.
type query struct {
	Expr   string `yaml:"expr"`
	Legend string `yaml:"legend"`
}

// scope says whose series a panel shows, and so which variables select them. The zero value is the nodes.
type scope string

const (
	nodes     scope = ""
	members   scope = "members"  // of etcd
	recording scope = "recorded" // by rules, which know no instance
)

// panel is one panel. The builder of its kind sets what all panels of the kind have in
// common.
type panel struct {
	Title string  `yaml:"title"`
	About string  `yaml:"about"` // what the panel shows, and what a reader should do about it
	Unit  string  `yaml:"unit"`  // in Grafana's names
	Show  display `yaml:"show"`
	Of    scope   `yaml:"of"`

	query    `yaml:",inline"` // of a panel with one query
	Queries  []query          `yaml:"queries"`
	Warning  []float64        `yaml:"warning"`  // values from which on an operator must act, as those of the alerts
	Critical []float64        `yaml:"critical"` // the same, at once
	Runbooks []string         `yaml:"runbooks"` // names of alerts, which are those of the runbooks
	Traces   bool             `yaml:"traces"`   // of a histogram that has exemplars
	// LegendTable shows the legend of many series as a table beside them.
	LegendTable bool    `yaml:"legend_table"`
	Empty       string  `yaml:"empty"`  // what a number says where there is no series
	Max         float64 `yaml:"max"`    // of the axis, if any
	Signed      bool    `yaml:"signed"` // values may be negative; else the axis begins at 0
	Width       uint32  `yaml:"width"`  // of 24 columns; 0: the usual width of the display
	High        uint32  `yaml:"high"`   // the same for the height
}

// The sizes on Grafana's grid.
const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 8
	numberWidth = 4
	numberHigh  = 4
)

func (p panel) columns() uint32 { return p.size(p.Width, numberWidth, panelWidth) }

func (p panel) height() uint32 { return p.size(p.High, numberHigh, panelHeight) }

// size returns a size that the panel sets, or the usual size of its display.
func (p panel) size(set, ofNumber, ofOthers uint32) uint32 {
	if p.Show == number {
		return cmp.Or(set, ofNumber)
	}
	return cmp.Or(set, ofOthers)
}

// build makes Grafana's panel, at the place that the dashboard chooses.
func (p panel) build(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	switch p.Show {
	case number:
		return p.stat(id, at)
	case heat:
		return p.heatmap(id, at)
	case columns:
		return p.table(id, at)
	}
	return p.timeseries(id, at)
}

func (p panel) targets() []cog.Builder[variants.Dataquery] {
	var targets []cog.Builder[variants.Dataquery]
	for i, q := range p.Queries {
		target := prometheus.NewDataqueryBuilder().
			Datasource(datasource()).
			Expr(q.Expr).
			LegendFormat(q.Legend).
			RefId(string(rune('A' + i)))
		switch p.Show {
		case heat:
			target = target.Range().Format(prometheus.PromQueryFormatHeatmap)
		case columns:
			target = target.Instant().Format(prometheus.PromQueryFormatTable)
		default:
			target = target.Range().Format(prometheus.PromQueryFormatTimeSeries)
		}
		if p.Traces {
			target = target.Exemplar(true)
		}
		targets = append(targets, target)
	}
	return targets
}

// link is a link of a panel or of a dashboard.
type link dashboard.DashboardLink

func (l link) Build() (dashboard.DashboardLink, error) { return dashboard.DashboardLink(l), nil }

// links returns links to the runbooks of the panel's alerts.
func (p panel) links() []cog.Builder[dashboard.DashboardLink] {
	var links []cog.Builder[dashboard.DashboardLink]
	for _, name := range p.Runbooks {
		url := "${runbooks:raw}/" + name + ".md"
		links = append(links, link{
			Title:       "Runbook: " + name,
			Type:        dashboard.DashboardLinkTypeLink,
			Url:         &url,
			Tags:        []string{},
			TargetBlank: true,
		})
	}
	return links
}

func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	for _, from := range p.Warning {
		steps = append(steps, dashboard.Threshold{Value: &from, Color: "orange"})
	}
	for _, from := range p.Critical {
		steps = append(steps, dashboard.Threshold{Value: &from, Color: "red"})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
