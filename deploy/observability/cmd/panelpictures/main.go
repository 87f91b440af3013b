// Panelpictures draws each panel of the dashboards from the series of a running
// Prometheus, one picture for each dashboard and one for each of its rows, so that a
// person can look at all of them at once:
//
//	go run ./cmd/panelpictures --prometheus http://127.0.0.1:9090 --range 10m --out /tmp/pictures
//
// It reads what is committed in deploy/grafana, as Grafana would, and is no Grafana:
// it shows series, legends, units, thresholds and places, not every option.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"
)

type settings struct {
	prometheus, dashboards, out string
	shown, scrape               time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.prometheus, "prometheus", "http://127.0.0.1:9090", "`URL` of Prometheus")
	flag.StringVar(&s.dashboards, "dashboards", "../grafana", "`folder` of the dashboards")
	flag.StringVar(&s.out, "out", "panel-pictures", "`folder` to write to")
	flag.DurationVar(&s.shown, "range", 10*time.Minute, "time to show, until now")
	flag.DurationVar(&s.scrape, "scrape", 5*time.Second, "how often Prometheus scrapes; $__rate_interval is four times that")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "panelpictures:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	names, err := filepath.Glob(filepath.Join(s.dashboards, "*.json"))
	if err != nil || len(names) == 0 {
		return fmt.Errorf("no dashboards in %s (%v)", s.dashboards, err)
	}
	if err := os.MkdirAll(s.out, 0o755); err != nil {
		return err
	}
	until := time.Now()
	for _, name := range names {
		d, err := readDashboard(name)
		if err != nil {
			return err
		}
		source := source{base: s.prometheus, from: until.Add(-s.shown), until: until, step: max(s.shown/120, s.scrape)}
		source.variables = d.variables(4*s.scrape, s.shown)
		for i := range d.Panels {
			if err := source.fill(ctx, &d.Panels[i]); err != nil {
				return fmt.Errorf("%s, %s: %w", name, d.Panels[i].Title, err)
			}
			if p := &d.Panels[i]; p.Type != "row" && len(p.series) == 0 {
				fmt.Printf("%s: %s: no series\n", d.Title, p.Title)
			}
		}
		if err := d.draw(s.out, filepath.Base(name)); err != nil {
			return err
		}
	}
	return nil
}
