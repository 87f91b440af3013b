package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

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
	l := &lab{cfg: cfg, report: newReport(), progress: progress,
		setup: rig.Setup{Dir: dir, Binary: program.Binary, NodeLogLevel: cfg.NodeLogLevel}}
	if cfg.against != "" {
		return l.report, attempt(func() { against(ctx, l) })
	}
	for _, p := range l.parts() {
		if !cfg.wants(p.rows...) {
			continue
		}
		if err := attempt(func() { l.runPart(ctx, &p) }); err != nil {
			return l.report, fmt.Errorf("%s: %w", p.rows[0], err)
		}
	}
	progress.Step("done")
	return l.report, nil
}

// part measures rows on a store of its own.
type part struct {
	rows    []string
	members int      // of etcd; 0: the part starts its stores itself
	flags   []string // of the nodes
	run     func(context.Context, *bench)
}

func (l *lab) parts() []part {
	return []part{
		{[]string{"distinct", "cold", "hot", "reactivate", "mixed", "cpu", "idle", "p99", "overload", "storm",
			"guessing"}, 1, manyClients(), l.rounds},
		{[]string{"devices"}, 1, nil, l.devices},
		{[]string{"memory"}, 1, manyClients(), l.footprint},
		{[]string{"members"}, 3, nil, l.members},
		{[]string{"placement"}, 1, nil, l.placement},
		{[]string{"events-on"}, 1, webhookFlags(), l.eventsOn},
		{[]string{"accounts"}, 1, withoutDelivery(), l.accounts},
		{[]string{"external"}, 1, nil, l.external},
		{[]string{"leases"}, 1, nil, l.leases},
		{[]string{"receipts"}, 1, nil, l.receipts},
		{[]string{"fair"}, 0, nil, l.fair},
		{[]string{"backlog", "deliveries"}, 1, append(webhookFlags(), "--record-activations"),
			l.backlog},
		{[]string{capacityRow}, 1, nil, l.capacity},
	}
}

// runPart runs a part, with etcd and two nodes of its own.
func (l *lab) runPart(ctx context.Context, p *part) {
	if p.members == 0 {
		p.run(ctx, nil)
		return
	}
	l.progress.Step("%s: starting etcd (members: %d) and two nodes", p.rows[0], p.members)
	b := l.bench(ctx, p.members, p.flags...)
	defer b.stop()
	p.run(ctx, b)
}
