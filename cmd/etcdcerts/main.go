package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config contains the settings.
type config struct {
	namespace string
	service   string
	members   int
	lifetime  time.Duration
	timeout   time.Duration
	account   string
}

func parse(args []string, stderr io.Writer) (config, error) {
	var c config
	flags := flag.NewFlagSet("etcdcerts", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&c.namespace, "namespace", "", "`namespace` of the cluster and of the Secrets; empty: this pod's")
	flags.StringVar(&c.service, "service", "etcd",
		"`name` of the StatefulSet of the members and of its headless Service")
	flags.IntVar(&c.members, "members", 3, "how many members there are, or will be")
	flags.DurationVar(&c.lifetime, "lifetime", 365*24*time.Hour,
		"lifetime of a certificate; etcdcerts renews it when a third of it is left")
	flags.DurationVar(&c.timeout, "timeout", time.Minute, "how long to try")
	flags.StringVar(&c.account, "service-account", account,
		"`folder` with the token, the authority and the namespace that Kubernetes gives a pod")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	switch {
	case flags.NArg() > 0:
		return c, fmt.Errorf("unknown argument %q: etcdcerts takes only flags", flags.Arg(0))
	case c.members < 1 || c.members > 9:
		return c, fmt.Errorf("--members is %d: write a number from 1 to 9", c.members)
	case c.lifetime < time.Hour || c.lifetime > authorityReserve:
		return c, fmt.Errorf("--lifetime is %v: write a duration from 1h to %v", c.lifetime, authorityReserve)
	case c.service == "" || strings.Contains(c.service, "."):
		return c, fmt.Errorf("--service is %q: write the name of a Service", c.service)
	}
	return c, nil
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintf(stderr, "etcdcerts: %v\n", err)
		return exitUsage
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.timeout)
	defer cancel()
	kubernetes, err := inCluster(cfg.namespace, cfg.account)
	if err == nil {
		cfg.namespace = kubernetes.namespace
		err = keep(ctx, cfg, kubernetes, time.Now(), stdout)
	}
	if err != nil {
		fmt.Fprintf(stderr, "etcdcerts: %v\n", err)
		return exitFailed
	}
	return 0
}
