package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

// dashboard is what is drawn of Grafana's JSON.
type dashboard struct {
	Title      string
	Panels     []panel
	Templating struct {
		List []struct{ Type, Name, AllValue string }
	}
}

type panel struct {
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		Expr, LegendFormat, Format string
		Instant                    bool
	}
	FieldConfig struct {
		Defaults struct {
			Unit, NoValue string
			Min, Max      *float64
			Thresholds    struct{ Steps []threshold }
			Custom        struct{ Stacking struct{ Mode string } }
		}
	}
	Options struct {
		Legend    struct{ DisplayMode string }
		ColorMode string
		YAxis     struct{ Unit string }
	}

	series []series // of all targets, once they were asked for
}

type threshold struct {
	Value *float64
	Color string
}

func readDashboard(name string) (*dashboard, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var d dashboard
	if err := json.Unmarshal(content, &d); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &d, nil
}

// variables replaces those of the dashboard by what "All" stands for.
func (d *dashboard) variables(rateInterval, shown time.Duration) *strings.Replacer {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%ds", int(d.Seconds())) }
	replaced := []string{"$__rate_interval", seconds(rateInterval), "$__range", seconds(shown)}
	for _, v := range d.Templating.List {
		if v.AllValue != "" {
			replaced = append(replaced, `"$`+v.Name+`"`, `"`+v.AllValue+`"`)
		}
	}
	return strings.NewReplacer(replaced...)
}

// unit is that of the panel's values.
func (p *panel) unit() string {
	if p.Type == "heatmap" {
		return p.Options.YAxis.Unit
	}
	return p.FieldConfig.Defaults.Unit
}
