package main

import (
	"fmt"
	"io"

	"licet/loadtest/trial"
)

// config holds the command line.
type config struct {
	trial.Options
	orders, refunds int
}

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	flags := cfg.NewFlags(programName, stderr, "what happens on the day; the same seed plans the same day")
	flags.IntVar(&cfg.orders, "orders", 610, "how many orders are made; of so many 508 are paid with money")
	flags.IntVar(&cfg.refunds, "refunds", 50, "how many of the paid ones are refunded")
	if err := cfg.Parse(flags, args); err != nil {
		return nil, err
	}
	switch {
	case cfg.orders < minOrders || cfg.orders > 100_000:
		return nil, fmt.Errorf("--orders is %d: it must be from %d to 100000", cfg.orders, minOrders)
	case cfg.refunds < 0 || cfg.refunds > cfg.orders/4:
		return nil, fmt.Errorf("--refunds is %d: it must be from 0 to a quarter of the orders", cfg.refunds)
	}
	return cfg, nil
}
