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
	purchases int
	kills     int
	nodes     int
	drop      int
	life      time.Duration
}

const minPurchases = 100

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	flags := cfg.NewFlags(programName, stderr,
		"what buyers do, which requests and callbacks fail, and which nodes are killed; the same seed plans the same")
	flags.IntVar(&cfg.purchases, "purchases", 10_000, "how many buyers there are; each has an order")
	flags.IntVar(&cfg.kills, "kills", 24, "how often a node is killed and started again")
	flags.IntVar(&cfg.nodes, "nodes", 3, "nodes of licet")
	flags.IntVar(&cfg.drop, "drop", 50, "how many of 1000 callbacks are never sent")
	flags.DurationVar(&cfg.life, "order-lifetime", 30*time.Second, "how long an order can be paid; a payment in an "+
		"open checkout is late afterwards")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
	}
	switch {
	case cfg.purchases < minPurchases || cfg.purchases > 100_000:
		return nil, fmt.Errorf("--purchases is %d: it must be from %d to 100000", cfg.purchases, minPurchases)
	case cfg.kills < 0 || cfg.kills > cfg.purchases/4:
		return nil, fmt.Errorf("--kills is %d: it must be from 0 to a quarter of the purchases", cfg.kills)
	case cfg.nodes < 2:
		return nil, fmt.Errorf("--nodes is %d: it must be at least 2, so that some are up while others are not",
			cfg.nodes)
	case cfg.drop < 0 || cfg.drop > 1000:
		return nil, fmt.Errorf("--drop is %d: it must be from 0 to 1000", cfg.drop)
	case cfg.life < time.Second || cfg.life > 45*time.Second:
		return nil, fmt.Errorf("--order-lifetime is %v: it must be from 1s to 45s, before the service first asks "+
			"Stripe about a checkout", cfg.life)
	}
	return cfg, nil
}
