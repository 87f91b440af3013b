package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// settings are how much is measured. They go into the report.
type settings struct {
	Rounds      int           `json:"rounds"`
	Licenses    int           `json:"licenses"`      // distinct ones of a round
	Spilled     int           `json:"spilled"`       // devices of the spilled license
	Large       int           `json:"large_devices"` // of the large license
	Small       int           `json:"small_devices"` // of the one it is compared with
	Remembered  int           `json:"remembered_licenses"`
	Connections int           `json:"idle_connections"`
	Overload    int           `json:"overload_connections"`
	IdleOps     int           `json:"idle_operations"`
	Span        time.Duration `json:"span"`       // of a load that is bound by time
	SweepSpan   time.Duration `json:"sweep_span"` // of one try of a sweep
	Settle      time.Duration `json:"settle"`     // at most, before memory is read
	Soak        time.Duration `json:"soak"`
	Backlog     int           `json:"backlog"` // events
	Sweep       []int         `json:"sweep"`   // operations at a time to try
	Clients     []int         `json:"clients"`
}

// config is what the command line says.
type config struct {
	settings
	setup
	only  []string
	quick bool
}

// setup is what every measurement has to be told.
type setup struct {
	rig.Setup
	lenient bool // misses are no failure
}

func (s *setup) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&s.lenient, "no-fail", false, "end with exit code 0 where a must is missed too")
	s.Setup.AddFlags(flags)
}

func fullSettings() settings {
	return settings{
		Rounds: 5, Licenses: 20_000, Spilled: 5_000, Large: 300_000, Small: 1_000,
		Remembered: 100_000, Connections: 10_000, Overload: 8_192, IdleOps: 400,
		Span: 2 * time.Second, SweepSpan: 700 * time.Millisecond, Settle: 30 * time.Second, Soak: 10 * time.Minute,
		Backlog: 1_000_000,
		Sweep:   []int{32, 64, 128, 256, 512, 1024}, Clients: []int{1, 2, 4},
	}
}

// quickSettings fill every row in seconds, with numbers that mean nothing.
func quickSettings() settings {
	return settings{
		Rounds: 1, Licenses: 300, Spilled: 100, Large: 600, Small: 100,
		Remembered: 500, Connections: 100, Overload: 64, IdleOps: 10,
		Span: 150 * time.Millisecond, SweepSpan: 50 * time.Millisecond, Settle: 200 * time.Millisecond, Soak: 2 * time.Second,
		Backlog: 1_000,
		Sweep:   []int{32}, Clients: []int{1},
	}
}

// parseConfig reads the command line.
func parseConfig(args []string, stderr io.Writer) (*config, error) {
	full := fullSettings()
	cfg := &config{}
	flags := pflag.NewFlagSet("compare", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.StringSliceVar(&cfg.only, "only", nil, "rows to measure, with commas between: "+strings.Join(rowIDs(), ","))
	flags.BoolVar(&cfg.quick, "quick", false, "small sizes: shows in seconds that everything works, and no number means anything")
	rounds := flags.Int("rounds", full.Rounds, "rounds to take medians of")
	span := flags.Duration("span", full.Span, "length of a load that is bound by time")
	soak := flags.Duration("soak", full.Soak, "length of the long run at half rate")
	backlog := flags.Int("backlog", full.Backlog, "events of the backlog")
	cfg.addFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	for _, id := range cfg.only {
		if !slices.Contains(rowIDs(), id) {
			return nil, fmt.Errorf("--only has %q, which is none of %s", id, strings.Join(rowIDs(), ", "))
		}
	}
	if *rounds < 1 || *span <= 0 || *soak <= 0 || *backlog < eventsEach {
		return nil, fmt.Errorf("--rounds, --span and --soak must be above 0, and --backlog at least %d", eventsEach)
	}
	cfg.settings = full
	if cfg.quick {
		cfg.settings = quickSettings()
	}
	for name, set := range map[string]func(){
		"rounds":  func() { cfg.Rounds = *rounds },
		"span":    func() { cfg.Span = *span },
		"soak":    func() { cfg.Soak = *soak },
		"backlog": func() { cfg.Backlog = *backlog },
	} {
		if !cfg.quick || flags.Changed(name) {
			set()
		}
	}
	return cfg, nil
}

// wants tells whether any of these rows is asked for.
func (c *config) wants(ids ...string) bool {
	return len(c.only) == 0 || slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(c.only, id) })
}

func rowIDs() []string {
	var ids []string
	for _, r := range rows() {
		ids = append(ids, r.id)
	}
	return ids
}
