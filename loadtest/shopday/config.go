package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"licet/loadtest/rig"
)

// config is what the command line says.
type config struct {
	rig.Setup
	seed            uint64
	orders, refunds int
	members         int
	keepLogs        string
}

func parseConfig(args []string, stderr io.Writer) (*config, error) {
	cfg := &config{}
	flags := pflag.NewFlagSet("shopday", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.Uint64Var(&cfg.seed, "seed", 1, "what happens on the day; the same seed plans the same day")
	flags.IntVar(&cfg.orders, "orders", 610, "how many orders are made; of so many 508 are paid with money")
	flags.IntVar(&cfg.refunds, "refunds", 50, "how many of the paid ones are refunded")
	flags.IntVar(&cfg.members, "members", 3, "members of etcd")
	flags.StringVar(&cfg.keepLogs, "keep-logs", "", "directory for the nodes' logs (default: they are not kept)")
	cfg.AddFlags(flags)
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	case cfg.orders < minOrders || cfg.orders > 100_000:
		return nil, fmt.Errorf("--orders is %d: it must be from %d to 100000", cfg.orders, minOrders)
	case cfg.refunds < 0 || cfg.refunds > cfg.orders/4:
		return nil, fmt.Errorf("--refunds is %d: it must be from 0 to a quarter of the orders", cfg.refunds)
	case cfg.members < 1:
		return nil, fmt.Errorf("--members is %d: it must be at least 1", cfg.members)
	}
	return cfg, nil
}
