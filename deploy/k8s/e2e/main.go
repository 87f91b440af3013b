package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
)

const (
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// The processes must end with this process. Linux sends them a signal when the thread ends that has started them,
	// and the main thread ends with the process.
	runtime.LockOSThread()
	if len(os.Args) == 4 && os.Args[1] == firstProcess {
		fmt.Fprintf(os.Stderr, "e2e: %v\n", beFirst(os.Args[2], os.Args[3]))
		os.Exit(exitFailed)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer cancel()
	os.Exit(command(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// config is the settings.
type config struct {
	root string // of the repository
	out  string
	only string
	keep bool
}

func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var cfg config
	flags := flag.NewFlagSet("e2e", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&cfg.root, "root", ".", "`folder` of the repository")
	flags.StringVar(&cfg.out, "out", "", "`folder` for logs (default: load-results/k8s-e2e in the repository)")
	flags.StringVar(&cfg.only, "only", "",
		"`steps` to do after the main job, by the beginnings of their names, such as drain,backup (default: all)")
	flags.BoolVar(&cfg.keep, "keep", false,
		"after the last step, or a failed step, leave the cluster up until Ctrl-C")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		return exitUsage
	case flags.NArg() > 0:
		fmt.Fprintf(stderr, "e2e: %q is not understood: there are flags only\n", flags.Arg(0))
		return exitUsage
	}
	if err := run(ctx, cfg, stdout); err != nil {
		fmt.Fprintf(stderr, "e2e: %v\n", err)
		return exitFailed
	}
	return 0
}

// run is everything from the first look at the machine to the last.
func run(ctx context.Context, cfg config, stdout io.Writer) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("this must be run by root: it makes namespaces, mounts and cgroups, and removes them " +
			"again. Nothing is installed. Try: sudo make k8s-e2e")
	}
	if cfg.root, err = filepath.Abs(cfg.root); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.root, pagePath)); err != nil {
		return fmt.Errorf("%s is not the folder of the repository: %w", cfg.root, err)
	}
	if cfg.out == "" {
		cfg.out = filepath.Join(cfg.root, "load-results", "k8s-e2e")
	}
	unlock, err := onlyOne()
	if err != nil {
		return err
	}
	defer unlock()
	// A run that was ended by SIGKILL leaves files and cgroups.
	if err := sweep(); err != nil {
		return fmt.Errorf("remove what an earlier run left: %w", err)
	}
	if err := refuse(); err != nil {
		return err
	}
	report := newReport(stdout)
	defer func() { err = errors.Join(err, report.summary()) }()

	p, err := newPage(cfg.root)
	if err != nil {
		return err
	}
	var tools *programs
	if err := report.step(ctx, "programs: build or find them", func(ctx context.Context) error {
		return attempt(func() { tools = findPrograms(ctx, cfg.root, report) })
	}); err != nil {
		return err
	}
	before, err := look(ctx, tools)
	if err != nil {
		return err
	}
	var c *cluster
	if err := attempt(func() { c = newCluster(cfg, tools, report) }); err != nil {
		return err
	}
	defer func() {
		// Also after Ctrl-C, so not bound by ctx.
		down := report.step(context.WithoutCancel(ctx), "teardown: the machine is as it was",
			func(ctx context.Context) error {
				return errors.Join(c.stop(err != nil), before.compare(ctx, tools))
			})
		err = errors.Join(err, down)
	}()
	r := &walk{cluster: c, page: p, report: report, cfg: cfg}
	err = r.steps(ctx)
	if cfg.keep && ctx.Err() == nil {
		report.say("the cluster stays until Ctrl-C. To look at it: %s", c.hint())
		<-ctx.Done()
	}
	return err
}
