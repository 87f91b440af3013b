package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// row is a title with panels below it.
type row struct {
	title  string
	panels []panel
}

// page is one dashboard.
type page struct {
	file, uid, title, about string
	tags                    []string
	variables               []variable
	rows                    []row
}

// tag is the tag of all dashboards. Their links to each other go by it.
const tag = "licet"

func (p page) build() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder(p.title).
		Uid(p.uid).
		Description(p.about).
		Tags(append([]string{tag}, p.tags...)).
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
	for _, r := range p.rows {
		id++
		b = b.WithRow(dashboard.NewRowBuilder(r.title).Id(id).GridPos(dashboard.GridPos{X: 0, Y: y, W: gridWidth,
			H: 1}))
		y++
		x, deepest := uint32(0), uint32(0)
		for _, panel := range r.panels {
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
	for _, r := range p.rows {
		all = append(all, r.panels...)
	}
	return all
}
