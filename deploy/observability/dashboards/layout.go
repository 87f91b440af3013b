package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// row is a title with panels below it.
type row struct {
	Title  string  `yaml:"title"`
	Panels []panel `yaml:"panels"`
}

// page is one dashboard.
type page struct {
	File, UID string     `yaml:"-"`
	variables []variable // at the top

	Title   string   `yaml:"title"`
	About   string   `yaml:"about"`
	Tags    []string `yaml:"tags"`
	Members bool     `yaml:"members"` // the dashboard also shows members of etcd, and lets the reader choose some
	Rows    []row    `yaml:"rows"`
}

// tag is the tag of all dashboards. Their links to each other go by it.
const tag = "licet"

func (p page) build() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder(p.Title).
		Uid(p.UID).
		Description(p.About).
		Tags(append([]string{tag}, p.Tags...)).
		Readonly().
		Refresh("30s").
		Time("now-1h", "now").
		Timezone(common.TimeZoneBrowser).
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(link{
			Title:       "Licet",
			Type:        dashboard.DashboardLinkTypeDashboards,
			Icon:        "external link",
			Tags:        []string{tag},
			IncludeVars: true,
			KeepTime:    true,
		}).
		WithVariable(datasourceVariable())
	for _, v := range p.variables {
		b = b.WithVariable(v.build())
	}
	b = b.WithVariable(runbooksVariable{})

	id, y := uint32(0), uint32(0)
	for _, r := range p.Rows {
		id++
		b = b.WithRow(dashboard.NewRowBuilder(r.Title).Id(id).GridPos(dashboard.GridPos{X: 0, Y: y, W: gridWidth,
			H: 1}))
		y++
		x, deepest := uint32(0), uint32(0)
		for _, panel := range r.Panels {
			if x+panel.columns() > gridWidth {
				x, y, deepest = 0, y+deepest, 0
			}
			id++
			b = b.WithPanel(panel.build(id, dashboard.GridPos{X: x, Y: y, W: panel.columns(), H: panel.height()}))
			x, deepest = x+panel.columns(), max(deepest, panel.height())
		}
		y += deepest
	}
	return b
}

// all returns the panels of all rows.
func (p page) all() []panel {
	var all []panel
	for _, r := range p.Rows {
		all = append(all, r.Panels...)
	}
	return all
}
