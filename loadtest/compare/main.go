package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"licet/loadtest/rig"
)

func main() { rig.Main(command) }

// command runs the program, and returns its exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseConfig(args, stderr)
	if err != nil {
		return rig.UsageError(stderr, "compare", err)
	}
	report, failure := compare(ctx, cfg, rig.NewProgress(stderr))
	if failure != nil {
		fmt.Fprintln(stderr, "compare:", failure)
	}
	if report == nil {
		return rig.ExitFailed
	}
	results := report.results(cfg.wants)
	if cfg.quick {
		fmt.Fprintln(stdout, "QUICK: small sizes, no number means anything")
	}
	if err := errors.Join(
		report.writeTable(stdout, results),
		writeJSON(stdout, document{
			Quick: cfg.quick, Machine: thisMachine(ctx), Config: cfg.settings, Rows: results, Figures: report.figures,
			Growth: report.growth,
		}),
	); err != nil {
		fmt.Fprintln(stderr, "compare: print the table:", err)
		return rig.ExitFailed
	}
	if failure != nil || anyMissed(results) && !cfg.lenient {
		return rig.ExitFailed
	}
	return rig.ExitOK
}

// compare measures the wanted rows, part by part. Each part has a store of its own, so
// that no part is slower for what another has written. If a part fails, compare returns what was measured until then
// along with the error.
func compare(ctx context.Context, cfg *config, progress *rig.Progress) (*report, error) {
	if err := checkFiles(max(cfg.Overload, cfg.Connections)); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(cfg.Dir, "licet-compare-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the stores: %w", err)
	}
	defer os.RemoveAll(dir)
	defer progress.Clear()
	progress.Step("building licet")
	program, err := rig.BuildLicet(ctx, dir, &cfg.Setup)
	if err != nil {
		return nil, err
	}
	l := &lab{cfg: cfg, dir: dir, licet: program, report: newReport(), progress: progress}
	for _, part := range []struct {
		name string
		rows []string
		run  func(context.Context) error
	}{
		{"rounds", []string{"distinct", "cold", "hot", "reactivate", "mixed", "cpu", "idle", "p99", "overload", "storm",
			"guessing", "soak"}, l.rounds},
		{"devices", []string{"devices"}, l.devices},
		{"memory", []string{"memory"}, l.footprint},
		{"members", []string{"members"}, l.members},
		{"placement", []string{"placement"}, l.placement},
		{"events-on", []string{"events-on"}, l.eventsOn},
		{"accounts", []string{"accounts"}, l.accounts},
		{"external", []string{"external"}, l.external},
		{"leases", []string{"leases"}, l.leases},
		{"receipts", []string{"receipts"}, l.receipts},
		{"fair", []string{"fair"}, l.fair},
		{"backlog", []string{"backlog", "deliveries"}, l.backlog},
		{"soak", []string{"soak"}, l.soak},
		{"capacity", []string{capacityRow}, l.capacity},
	} {
		if !cfg.wants(part.rows...) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return l.report, fmt.Errorf("%s: %w", part.name, err)
		}
		if err := l.cleanUp(); err != nil {
			return l.report, err
		}
	}
	progress.Step("done")
	return l.report, nil
}

// cleanUp removes the stores, so that what is measured next gets an empty disk.
func (l *lab) cleanUp() error {
	stores, err := filepath.Glob(filepath.Join(l.dir, "store-*"))
	if err != nil {
		return err
	}
	for _, store := range stores {
		if err := os.RemoveAll(store); err != nil {
			return fmt.Errorf("remove a store: %w", err)
		}
	}
	return nil
}
