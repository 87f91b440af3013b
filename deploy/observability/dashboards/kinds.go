package dashboards

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// builder is a builder of panels of any kind.
type builder[B any] interface {
	Id(uint32) B
	GridPos(dashboard.GridPos) B
	Title(string) B
	Description(string) B
	Datasource(common.DataSourceRef) B
	Targets([]cog.Builder[variants.Dataquery]) B
	Links([]cog.Builder[dashboard.DashboardLink]) B
}

// begin sets what panels of all kinds have.
func begin[B builder[B]](b B, p panel, id uint32, at dashboard.GridPos) B {
	return b.Id(id).GridPos(at).Title(p.Title).Description(p.About).Datasource(datasource()).
		Targets(p.targets()).Links(p.links())
}

func (p panel) timeseries(id uint32, at dashboard.GridPos) *timeseries.PanelBuilder {
	legend := common.NewVizLegendOptionsBuilder().
		ShowLegend(true).
		DisplayMode(common.LegendDisplayModeList).
		Placement(common.LegendPlacementBottom)
	if p.LegendTable {
		legend = legend.
			DisplayMode(common.LegendDisplayModeTable).
			Placement(common.LegendPlacementRight).
			Calcs([]string{"mean", "max"}).
			SortBy("Mean").
			SortDesc(true)
	}
	b := begin(timeseries.NewPanelBuilder(), p, id, at).
		Unit(p.Unit).
		Thresholds(p.thresholds()).
		Legend(legend).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).
			Sort(common.SortOrderDescending)).
		LineWidth(1).
		FillOpacity(10).
		ShowPoints(common.VisibilityModeNever)
	if !p.Signed {
		b = b.Min(0)
	}
	if p.Max > 0 {
		b = b.Max(p.Max)
	}
	if len(p.Warning)+len(p.Critical) > 0 {
		b = b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	if p.Show == stacked {
		b = b.FillOpacity(60).LineWidth(0).
			Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A"))
	}
	return b
}

func (p panel) stat(id uint32, at dashboard.GridPos) *stat.PanelBuilder {
	color := common.BigValueColorModeNone
	if len(p.Warning)+len(p.Critical) > 0 {
		color = common.BigValueColorModeValue
	}
	empty := p.Empty
	if empty == "" {
		empty = "–"
	}
	return begin(stat.NewPanelBuilder(), p, id, at).
		Unit(p.Unit).
		NoValue(empty).
		Thresholds(p.thresholds()).
		ColorMode(color).
		GraphMode(common.BigValueGraphModeArea).
		Orientation(common.VizOrientationAuto).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"}))
}

func (p panel) heatmap(id uint32, at dashboard.GridPos) *heatmap.PanelBuilder {
	return begin(heatmap.NewPanelBuilder(), p, id, at).
		Calculate(false).
		RowsFrame(heatmap.NewRowsHeatmapOptionsBuilder().Layout(common.HeatmapCellLayoutAuto)).
		YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.Unit).AxisPlacement(common.AxisPlacementLeft)).
		CellValues(heatmap.NewCellValuesBuilder().Unit("cps")).
		CellGap(1).
		Color(heatmap.NewHeatmapColorOptionsBuilder().
			Mode(heatmap.HeatmapColorModeScheme).
			Scheme("Blues").
			Scale(heatmap.HeatmapColorScaleExponential).
			Exponent(0.5).
			Steps(64)).
		ShowLegend()
}

// table shows the labels of one query's series in columns, and how many series there are.
func (p panel) table(id uint32, at dashboard.GridPos) *table.PanelBuilder {
	return begin(table.NewPanelBuilder(), p, id, at).
		Unit(p.Unit).
		Thresholds(p.thresholds()).
		WithTransformation(dashboard.DataTransformerConfig{
			Id: "organize",
			Options: map[string]any{
				"excludeByName": map[string]bool{"Time": true},
				"renameByName":  map[string]string{"Value": "Count"},
			},
		})
}
