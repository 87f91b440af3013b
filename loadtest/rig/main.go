package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// Exit codes, as those of licet.
const (
	ExitOK     = 0
	ExitFailed = 1 // also where all went well, and not everything is as it must be
	ExitUsage  = 2
)

// Main is a program that starts etcd: started again as a member, it is that, and
// otherwise the command, whose ctx ends when it is told to stop.
func Main(command func(ctx context.Context, args []string, stdout, stderr io.Writer) (exitCode int)) {
	BeEtcd()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// UsageError says what is wrong with a command line, if anything, and gives the
// exit code. Where help was asked for, the flags have printed it.
func UsageError(stderr io.Writer, program string, err error) (exitCode int) {
	if errors.Is(err, pflag.ErrHelp) {
		return ExitOK
	}
	fmt.Fprintf(stderr, "%s: %v\n", program, err)
	return ExitUsage
}
