package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// capacityConfig is what the command line of compare capacity says.
type capacityConfig struct {
	setup
	Devices    int           `json:"devices"`
	PerLicense int           `json:"devices_per_license"`
	Quota      int64         `json:"quota"`
	Retention  string        `json:"history"`
	Span       time.Duration `json:"span"`   // of each measurement of latencies
	Settle     time.Duration `json:"settle"` // at most, before etcd's memory is read
	onlyJSON   bool
}

const (
	// claimedDevices is how many devices a cell is to hold.
	claimedDevices = 5_000_000
	// smallLicenses is how many licenses the small store has at most, that the
	// full one is compared with.
	smallLicenses = 50_000
	leastLicenses = 100
)

func parseCapacity(args []string, stderr io.Writer) (*capacityConfig, error) {
	cfg := &capacityConfig{Quota: rig.EtcdQuota, Retention: usualRetention}
	flags := pflag.NewFlagSet("compare capacity", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.IntVar(&cfg.Devices, "devices", claimedDevices, "devices to bind")
	flags.IntVar(&cfg.PerLicense, "per-license", devicesEach, "devices of each license")
	flags.DurationVar(&cfg.Span, "span", 5*time.Second, "length of each measurement of latencies")
	flags.DurationVar(&cfg.Settle, "settle", 3*time.Minute, "how long to wait at most until etcd's memory settles")
	flags.BoolVar(&cfg.onlyJSON, "json", false, "print nothing but the line of JSON")
	cfg.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch licenses := cfg.licenses(); {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.PerLicense < 1 || cfg.Span <= 0 || cfg.Settle <= 0:
		return nil, errors.New("--per-license, --span and --settle must be above 0")
	case licenses < leastLicenses || licenses >= stride:
		return nil, fmt.Errorf("--devices comes to %d licenses: it must be from %d to %d", licenses, leastLicenses, stride-1)
	}
	return cfg, nil
}

// licenses is how many are needed for all devices.
func (c *capacityConfig) licenses() int {
	each := max(c.PerLicense, 1)
	return (c.Devices + each - 1) / each
}

// small is how many licenses the small store has.
func (c *capacityConfig) small() int { return min(smallLicenses, c.licenses()/10) }

// diskNeed is about what all files come to at most: the database with all
// history, its copy while it is defragmented, a backup, and etcd's log of
// writes, which it keeps some of whatever the store's size.
func (c *capacityConfig) diskNeed() int64 {
	const base, perDevice = 2 * gibibyte, 1200
	return base + perDevice*int64(c.Devices)
}

// capacityCommand is compare capacity but for what belongs to the process.
func capacityCommand(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseCapacity(args, stderr)
	if err != nil {
		return rig.UsageError(stderr, "compare capacity", err)
	}
	d, err := measureCapacity(ctx, cfg, rig.NewProgress(stderr))
	if err == nil && !cfg.onlyJSON {
		err = d.writeTable(stdout)
	}
	if err == nil {
		err = d.writeJSON(stdout)
	}
	if err != nil {
		fmt.Fprintln(stderr, "compare capacity:", err)
		return rig.ExitFailed
	}
	if anyMissed(d.Claims) && !cfg.lenient {
		return rig.ExitFailed
	}
	return rig.ExitOK
}

// measureCapacity sets a store up, fills it, and measures it.
func measureCapacity(ctx context.Context, cfg *capacityConfig, progress *rig.Progress) (*capacityDocument, error) {
	if err := checkFiles(openWorkers); err != nil {
		return nil, err
	}
	if err := checkDisk(cfg.Dir, cfg.diskNeed()); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(cfg.Dir, "licet-capacity-")
	if err != nil {
		return nil, fmt.Errorf("make a directory for the store: %w", err)
	}
	defer os.RemoveAll(dir)
	defer progress.Clear()
	progress.Step("building licet; up to %.1f GiB of disk will be used", float64(cfg.diskNeed())/gibibyte)
	program, err := rig.BuildLicet(ctx, dir, &cfg.Setup)
	if err != nil {
		return nil, err
	}
	c := &cell{cfg: cfg, dir: dir, licet: program, report: newReport(), progress: progress}
	defer c.stop()
	if err := c.start(ctx); err != nil {
		return nil, err
	}
	if err := c.measure(ctx); err != nil {
		return nil, err
	}
	progress.Step("done")
	return &capacityDocument{
		Machine: thisMachine(ctx), Config: cfg, Growth: c.growth,
		Claims: c.report.judged(claims(cfg.PerLicense)), Figures: c.report.figures,
	}, nil
}
