package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"licet/internal/process"
)

// Exit codes, as those of licet.
const (
	ExitOK     = 0
	ExitFailed = 1 // also for a run that found something wrong
	ExitUsage  = 2
)

// Main runs a command of a program that starts etcd. The command's context ends with
// SIGINT or SIGTERM.
func Main(command func(ctx context.Context, args []string, stdout, stderr io.Writer) (exitCode int)) {
	process.BeEtcd()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// UsageError prints what is wrong with a command line and returns the exit code. After
// --help, for which the flags have printed the help, it prints nothing.
func UsageError(stderr io.Writer, program string, err error) (exitCode int) {
	if errors.Is(err, pflag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	return ExitUsage
}

// Rest waits for a time, or until ctx ends.
func Rest(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
