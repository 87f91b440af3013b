package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// display is how a panel shows its series.
type display int

const (
	lines display = iota
	stacked
	number  // the last value, large
	heat    // of one query over buckets
	columns // a table of one query's labels
)

// query is one expression of a panel, with what names its series.
type query struct {
	expr, legend string
}

// step is a value from which on an operator must act, and its color. The values are those of
// the alerts.
type step struct {
	from  float64
	color string
}

func warning(from float64) step  { return step{from, "orange"} }
func critical(from float64) step { return step{from, "red"} }

// scope says whose series a panel shows, and so which variables select them.
type scope int

const (
	nodes     scope = iota
	members         // of etcd
	recording       // what rules have recorded, which knows no instance
)

// panel is one panel. The builder of its kind sets what all panels of the kind have in
// common.
type panel struct {
	title string
	about string // what the panel shows, and what a reader should do about it
	unit  string // in Grafana's names
	show  display
	of    scope

	queries  []query
	steps    []step
	runbooks []string // names of alerts, which are those of the runbooks
	traces   bool     // of a histogram that has exemplars
	legend   bool     // many series: their legend is a table beside them
	empty    string   // what a number says where there is no series
	max      float64  // of the axis, if any
	signed   bool     // values may be negative; else the axis begins at 0
	width    uint32   // of 24 columns; 0: the usual width of the display
	high     uint32   // the same for the upper bound
}

// The sizes on Grafana's grid.
const (
	gridWidth   = 24
	panelWidth  = 8
	panelHeight = 8
	numberWidth = 4
	numberHigh  = 4
)

func (p panel) columns() uint32 {
	switch {
	case p.width > 0:
		return p.width
	case p.show == number:
		return numberWidth
	}
	return panelWidth
}

func (p panel) height() uint32 {
	switch {
	case p.high > 0:
		return p.high
	case p.show == number:
		return numberHigh
	}
	return panelHeight
}

// build makes Grafana's panel, at the place that the dashboard chooses.
func (p panel) build(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	switch p.show {
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
	for i, q := range p.queries {
		target := prometheus.NewDataqueryBuilder().
			Datasource(datasource()).
			Expr(q.expr).
			LegendFormat(q.legend).
			RefId(string(rune('A' + i)))
		switch p.show {
		case heat:
			target = target.Range().Format(prometheus.PromQueryFormatHeatmap)
		case columns:
			target = target.Instant().Format(prometheus.PromQueryFormatTable)
		default:
			target = target.Range().Format(prometheus.PromQueryFormatTimeSeries)
		}
		if p.traces {
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
	for _, name := range p.runbooks {
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
	for _, s := range p.steps {
		steps = append(steps, dashboard.Threshold{Value: &s.from, Color: s.color})
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}
