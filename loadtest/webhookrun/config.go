package main

import (
	"fmt"
	"io"
	"time"

	"licet/loadtest/trial"
)

// config holds the command line.
type config struct {
	trial.Options
	activations int
	kills       int
	nodes       int
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
	flags.IntVar(&cfg.kills, "kills", 48, "how often a node is killed and started again: half of them while there "+
		"are operations, the others while the remaining events are delivered")
	flags.IntVar(&cfg.nodes, "nodes", 3, "nodes of licet")
	flags.IntVar(&cfg.failures, "failures-each", 0,
		"how often the unreliable endpoint fails one event at most; 0: no bound")
	flags.DurationVar(&cfg.impatience, "impatience", 15*time.Second, "after the last operation, and so long "+
		"without a delivery, the unreliable endpoint is disabled and enabled: then all waiting messages are tried "+
		"at once")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
	}
	switch {
	case cfg.activations < minActivations || cfg.activations > 1_000_000:
		return nil, fmt.Errorf("--activations is %d: it must be from %d to 1000000", cfg.activations, minActivations)
	case cfg.kills < 0 || cfg.kills > cfg.activations/4:
		return nil, fmt.Errorf("--kills is %d: it must be from 0 to a quarter of the activations", cfg.kills)
	case cfg.nodes < 2:
		return nil, fmt.Errorf("--nodes is %d: it must be at least 2, so that some are up while others are not",
			cfg.nodes)
	case cfg.failures < 0:
		return nil, fmt.Errorf("--failures-each is %d: it must be at least 0", cfg.failures)
	case cfg.impatience <= 0:
		return nil, fmt.Errorf("--impatience is %v: it must be above 0", cfg.impatience)
	}
	return cfg, nil
}
