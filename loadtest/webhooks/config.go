package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"licet/loadtest/trial"
)

// config holds the command line.
type config struct {
	trial.Options
	activations int
	failures    int
	impatience  time.Duration
}

const minActivations = 50

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	flags := cfg.NewFlags(programName, stderr,
		"what is done, which calls fail, and which nodes are killed; the same seed plans the same")
	flags.IntVar(&cfg.activations, "activations", 20_000,
		"how many activations there are; orders, payments, cancellations and removals come besides")
	cfg.KillFlags(flags, 48, ": half of them while there are operations, the others while the remaining events are "+
		"delivered; at most a quarter of the activations")
	flags.IntVar(&cfg.failures, "failures-each", 0,
		"how often the unreliable endpoint fails one event at most; 0: no bound")
	flags.DurationVar(&cfg.impatience, "impatience", 15*time.Second, "after the last operation, and so long "+
		"without a delivery, the unreliable endpoint is disabled and enabled: then all waiting messages are tried "+
		"at once")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
	}
	if cfg.impatience <= 0 {
		return nil, fmt.Errorf("--impatience is %v: it must be above 0", cfg.impatience)
	}
	return cfg, cmp.Or(trial.Between("activations", cfg.activations, minActivations, 1_000_000),
		cfg.CheckKills(cfg.activations), trial.Between("failures-each", cfg.failures, 0, 1000))
}
