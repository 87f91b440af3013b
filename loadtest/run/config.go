package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// config holds the command line, with the scenario's defaults for the rest.
type config struct {
	rig.Setup
	name     string
	scenario *scenario
	rate     float64
	duration time.Duration
	nodes    int
	accounts int      // between which licenses and orders are divided
	targets  []string // none: everything is booted here
	apiKey   string   // for the targets
	out      string
	slack    float64
	k6       string
	root     string // of the scripts
}

// parseConfig reads the command line.
func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{root: "loadtest"}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.StringVar(&cfg.name, "scenario", "", "which load: see loadtest/README.md")
	flags.Float64Var(&cfg.rate, "rate", 0, "arrivals a second (default: the scenario's)")
	flags.DurationVar(&cfg.duration, "duration", 0,
		"how long the load lasts, such as 30s or 1h (default: the scenario's)")
	flags.IntVar(&cfg.nodes, "nodes", 0, "how many nodes to start (default: the scenario's)")
	flags.IntVar(&cfg.accounts, "accounts", 1, "how many accounts share the licenses and orders")
	target := flags.String("target", "",
		"addresses of nodes that run already, with commas between; LICET_API_KEY has the API key")
	flags.StringVar(&cfg.out, "out", "", "directory for the reports (default: load-results/<scenario>)")
	flags.Float64Var(&cfg.slack, "slack", 1,
		"factor for what the thresholds allow answers to take, for machines that do other things too")
	flags.StringVar(&cfg.k6, "k6", "", "k6 to run the scripts with (default: built from loadtest/k6)")
	cfg.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if flags.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	var err error
	if cfg.scenario, err = loadScenario(cfg.root, cfg.name); err != nil {
		return nil, err
	}
	if err := cfg.fillIn(); err != nil {
		return nil, err
	}
	if *target != "" {
		for address := range strings.SplitSeq(*target, ",") {
			cfg.targets = append(cfg.targets, strings.TrimRight(address, "/"))
		}
		if cfg.apiKey = os.Getenv("LICET_API_KEY"); cfg.apiKey == "" {
			return nil, errors.New("with --target, LICET_API_KEY must have the API key: one of test mode, with the " +
				"scopes licenses and orders")
		}
	}
	if cfg.out == "" {
		cfg.out = filepath.Join("load-results", cfg.name)
	}
	return cfg, cfg.validate()
}

// fillIn sets what the command line leaves out to the scenario's defaults.
func (c *config) fillIn() (err error) {
	if c.rate == 0 {
		c.rate = c.scenario.Rate
	}
	if c.nodes == 0 {
		c.nodes = c.scenario.Nodes
	}
	if c.duration == 0 {
		c.duration, err = time.ParseDuration(c.scenario.Duration)
	}
	return err
}

func (c *config) validate() error {
	if c.rate <= 0 || c.nodes < 1 || c.slack <= 0 || c.duration < time.Second || c.duration%time.Second != 0 {
		return errors.New("--rate, --nodes and --slack must be above 0, and --duration whole seconds")
	}
	if c.accounts < 1 || c.accounts > 1 && len(c.targets) > 0 {
		return errors.New("--accounts must be above 0, and 1 with --target, whose API key is of one account")
	}
	for _, e := range c.scenario.Events {
		if len(c.targets) == 0 && deeds()[e.Do].onNode && e.Node >= c.nodes-1 {
			return fmt.Errorf("%s needs %d nodes at least: one must be left", c.name, e.Node+2)
		}
	}
	return nil
}
