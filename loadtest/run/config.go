package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"licet/loadtest/trial"
)

// config contains the command line, with the scenario's defaults for the rest.
type config struct {
	trial.Options
	name     string
	scenario *scenario
	rate     float64
	duration time.Duration
	accounts int      // between which licenses and orders are divided
	targets  []string // none: everything is booted here
	apiKey   string   // for the targets
	out      string
	slack    float64
	k6       string
	root     string // of the scripts
	// Of the scenario webhooks:
	failures   int
	impatience time.Duration
}

// parseConfig reads the command line, in the root of the repository.
func parseConfig(args []string, stderr io.Writer) (*config, error) {
	return parseIn("loadtest", args, stderr)
}

// parseIn reads the command line, and the scenarios in a directory.
func parseIn(root string, args []string, stderr io.Writer) (*config, error) {
	cfg := &config{root: root}
	flags := cfg.NewFlags(programName, stderr, "in the scenario webhooks, which nodes are killed and which calls fail",
		", in the scenario webhooks; as often again while the remaining events are delivered")
	flags.StringVar(&cfg.name, "scenario", "", "which load: see loadtest/README.md")
	flags.Float64Var(&cfg.rate, "rate", 0, "arrivals a second (default: the scenario's)")
	flags.DurationVar(&cfg.duration, "duration", 0,
		"how long the load lasts, such as 30s or 1h (default: the scenario's)")
	flags.IntVar(&cfg.accounts, "accounts", 1, "how many accounts share the licenses and orders")
	target := flags.String("target", "",
		"addresses of nodes that run already, with commas between; LICET_API_KEY has the API key")
	flags.StringVar(&cfg.out, "out", "", "directory for the reports (default: load-results/<scenario>)")
	flags.Float64Var(&cfg.slack, "slack", 1,
		"factor for what the thresholds allow answers to take, for machines that do other things too")
	flags.StringVar(&cfg.k6, "k6", "", "k6 to run the scripts with (default: built from loadtest/k6)")
	flags.IntVar(&cfg.failures, "failures-each", 0,
		"how often the unreliable endpoint fails one event at most; 0: no bound")
	flags.DurationVar(&cfg.impatience, "impatience", 15*time.Second, "after the load, and so long without a "+
		"delivery, the unreliable endpoint is disabled and enabled: then all waiting messages are tried at once")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
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
	c.Nodes, c.Members, c.Kills = cmp.Or(c.Nodes, c.scenario.Nodes), cmp.Or(c.Members, c.scenario.Members),
		cmp.Or(c.Kills, c.scenario.Kills)
	for i := range c.Kills {
		at := float64(i+1) / float64(c.Kills+1)
		c.scenario.Events = append(c.scenario.Events, event{At: at, Do: "kill and start"})
	}
	slices.SortStableFunc(c.scenario.Events, func(a, b event) int { return cmp.Compare(a.At, b.At) })
	if c.duration == 0 {
		c.duration, err = time.ParseDuration(c.scenario.Duration)
	}
	return err
}

func (c *config) validate() error {
	if c.rate <= 0 || c.slack <= 0 || c.duration < time.Second || c.duration%time.Second != 0 {
		return errors.New("--rate and --slack must be above 0, and --duration whole seconds")
	}
	arrivals := int(c.rate * c.duration.Seconds())
	if err := cmp.Or(c.Check(arrivals), trial.Between("failures-each", c.failures, 0, 1000)); err != nil {
		return err
	}
	if c.Kills > 0 && c.scenario.Kills == 0 || c.scenario.Webhooks && (len(c.targets) > 0 || c.accounts > 1) {
		return errors.New("--kills is for the scenario webhooks, which takes no --target, and one account only")
	}
	if c.impatience <= 0 {
		return fmt.Errorf("--impatience is %v: it must be above 0", c.impatience)
	}
	if c.accounts < 1 || c.accounts > 1 && len(c.targets) > 0 {
		return errors.New("--accounts must be above 0, and 1 with --target, whose API key is of one account")
	}
	for _, e := range c.scenario.Events {
		if len(c.targets) == 0 && deeds()[e.Do].onNode && e.Node >= c.Nodes-1 {
			return fmt.Errorf("%s needs %d nodes at least: one must be left", c.name, e.Node+2)
		}
	}
	return nil
}
