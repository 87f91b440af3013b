package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// settings says how much is measured. It is part of the report.
type settings struct {
	Rounds      int           `json:"rounds"`
	Licenses    int           `json:"licenses"`      // distinct ones of a round
	Accounts    int           `json:"accounts"`      // that share these licenses in the row accounts
	Spilled     int           `json:"spilled"`       // devices of the spilled license
	Large       int           `json:"large_devices"` // of the large license
	Small       int           `json:"small_devices"` // of the one it is compared with
	Remembered  int           `json:"remembered_licenses"`
	Connections int           `json:"idle_connections"`
	Overload    int           `json:"overload_connections"`
	IdleOps     int           `json:"idle_operations"`
	Span        time.Duration `json:"span"`       // of a load that is bound by time
	SweepSpan   time.Duration `json:"sweep_span"` // of one try of a sweep
	Quiet       time.Duration `json:"quiet"`      // at most, before memory is read
	Backlog     int           `json:"backlog"`    // events
	Devices     int           `json:"devices"`    // of capacity
	PerLicense  int           `json:"devices_per_license"`
	Sweep       []int         `json:"sweep"` // operations at a time to try
	Clients     []int         `json:"clients"`
}

// config contains the command line.
type config struct {
	settings
	rig.Setup
	only    []string
	attacks []string // of the row fair; empty: all
	against string   // another program, to measure in place of the rows
	quick   bool
	lenient bool // a missed must is no failure
}

func fullSettings() settings {
	return settings{
		Rounds: 5, Licenses: 20_000, Accounts: 1_000, Spilled: 5_000, Large: 300_000, Small: 1_000,
		Remembered: 100_000, Connections: 10_000, Overload: 8_192, IdleOps: 400,
		Span: 2 * time.Second, SweepSpan: 700 * time.Millisecond, Quiet: 30 * time.Second,
		Backlog: 1_000_000, Devices: targetDevices,
		Sweep: []int{32, 64, 128, 256, 512, 1024}, Clients: []int{1, 2, 4},
	}
}

// quickSettings measure every row in seconds. Their numbers mean nothing.
func quickSettings() settings {
	return settings{
		Rounds: 1, Licenses: 300, Accounts: 20, Spilled: 100, Large: 600, Small: 100,
		Remembered: 500, Connections: 100, Overload: 64, IdleOps: 10,
		Span: 150 * time.Millisecond, SweepSpan: 50 * time.Millisecond, Quiet: 200 * time.Millisecond,
		Backlog: 1_000, Devices: 3_000,
		Sweep: []int{32}, Clients: []int{1},
	}
}

// parseConfig reads the command line.
func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{settings: fullSettings()}
	if slices.Contains(args, "--quick") {
		cfg.settings = quickSettings()
	}
	flags := pflag.NewFlagSet("compare", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.StringSliceVar(&cfg.only, "only", nil,
		"rows to measure, with commas between: "+strings.Join(rowIDs(), ",")+" (default: all but capacity)")
	flags.StringArrayVar(&cfg.attacks, "attack", nil,
		"an attack of the row fair to measure, by its name in the table; may be repeated (default: all)")
	flags.StringVar(&cfg.against, "against", "",
		"another licet, such as an older build: measure activations of both programs in turns, and no row of the table")
	flags.BoolVar(&cfg.quick, "quick", false,
		"small sizes: shows in seconds that everything works, and no number means anything")
	flags.IntVar(&cfg.Rounds, "rounds", cfg.Rounds, "rounds to take medians of")
	flags.DurationVar(&cfg.Span, "span", cfg.Span, "length of a load that is bound by time")
	flags.IntVar(&cfg.Backlog, "backlog", cfg.Backlog, "events of the backlog")
	flags.IntVar(&cfg.Devices, "devices", cfg.Devices, "devices of the row capacity")
	flags.IntVar(&cfg.PerLicense, "per-license", devicesEach, "devices of each license in the row capacity")
	flags.BoolVar(&cfg.lenient, "no-fail", false, "end with exit code 0 even if a must is missed")
	cfg.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if cfg.against != "" && len(cfg.only)+len(cfg.attacks) > 0 {
		return nil, errors.New("--against measures no row, so --only and --attack say nothing")
	}
	for _, id := range cfg.only {
		if !slices.Contains(rowIDs(), id) {
			return nil, fmt.Errorf("--only has %q, which is none of %s", id, strings.Join(rowIDs(), ", "))
		}
	}
	for _, name := range cfg.attacks {
		if !slices.ContainsFunc(measured(), func(a attack) bool { return a.name == name }) {
			return nil, fmt.Errorf("--attack is %q, which is no attack of the row fair", name)
		}
	}
	if slices.Contains(cfg.only, capacityRow) && cfg.PerLicense == devicesEach {
		cfg.only = append(cfg.only, bytesRow)
	}
	switch licenses := cfg.fillLicenses(); {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.Rounds < 1 || cfg.Span <= 0 || cfg.PerLicense < 1 || cfg.Backlog < eventsEach:
		return nil, fmt.Errorf("--rounds, --span and --per-license must be above 0, and --backlog at least %d",
			eventsEach)
	case licenses < leastLicenses || licenses >= stride:
		return nil, fmt.Errorf("--devices comes to %d licenses: it must be from %d to %d", licenses, leastLicenses,
			stride-1)
	}
	return cfg, nil
}

// fillLicenses returns how many licenses the devices of the row capacity need.
func (c *config) fillLicenses() int {
	each := max(c.PerLicense, 1)
	return (c.Devices + each - 1) / each
}

// wants reports whether one of these rows is to be measured. capacity takes so long that
// it is measured only by name.
func (c *config) wants(ids ...string) bool {
	return c.against == "" && slices.ContainsFunc(ids, func(id string) bool {
		return slices.Contains(c.only, id) || len(c.only) == 0 && id != capacityRow && id != bytesRow
	})
}

// wantsAttack reports whether an attack of the row fair is to be measured.
func (c *config) wantsAttack(a attack) bool {
	return len(c.attacks) == 0 || slices.Contains(c.attacks, a.name)
}

func rowIDs() []string {
	var ids []string
	for _, r := range rows() {
		ids = append(ids, r.id)
	}
	return ids
}
