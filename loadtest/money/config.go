package main

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"licet/loadtest/trial"
)

// config contains the command line.
type config struct {
	trial.Options
	purchases int
	drop      int
	hide      int
	life      time.Duration
	suspend   bool
	keepLogs  string // directory; empty: they are not kept
}

const minPurchases = 100

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{Options: trial.Options{Members: 3, Nodes: 3, Kills: 24}}
	flags := cfg.NewFlags(programName, stderr,
		"what buyers do, which requests and callbacks fail, and which nodes are killed; the same seed plans the same",
		"; at most a quarter of the purchases")
	flags.IntVar(&cfg.purchases, "purchases", 10_000, "how many buyers there are; each has an order")
	flags.IntVar(&cfg.drop, "drop", 50, "how many of 1000 callbacks are never sent while buyers act")
	flags.IntVar(&cfg.hide, "hide", 500, "how many of 1000 callbacks about refunds and disputes are never sent: the "+
		"service must find them in Stripe's list of events")
	flags.DurationVar(&cfg.life, "order-lifetime", 30*time.Second, "how long an order can be paid; a payment in an "+
		"open checkout is late afterwards")
	flags.BoolVar(&cfg.suspend, "suspend-on-dispute", true, "suspend the licenses of an order while the buyer "+
		"disputes the payment")
	flags.StringVar(&cfg.keepLogs, "keep-logs", "", "directory for the nodes' logs (default: they are not kept)")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
	}
	if cfg.life < time.Second || cfg.life > 45*time.Second {
		return nil, fmt.Errorf("--order-lifetime is %v: it must be from 1s to 45s, before the service first asks "+
			"Stripe about a checkout", cfg.life)
	}
	return cfg, cmp.Or(trial.Between("purchases", cfg.purchases, minPurchases, 100_000),
		cfg.Check(cfg.purchases), trial.Between("drop", cfg.drop, 0, 1000),
		trial.Between("hide", cfg.hide, 0, 1000))
}
