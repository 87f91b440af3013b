// Command licet runs the licensing and order service. Everything it does is
// wiring: flags become a configuration, the packages are put together by hand
// in one function, and signals take them apart again.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/grpclog"

	"licet/cmd/licet/internal/cli"
)

// The exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	// Records keep whole milliseconds in UTC; so does the log.
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }

	// gRPC would write lines of its own to stderr; what matters of them comes
	// back as an error of the call.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))

	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		time.Sleep(signalEcho)
		drop(signals)
		<-signals
		fmt.Fprintln(os.Stderr, "licet: a second signal came, so it stops at once")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// signalEcho is how long the first signal may echo: a terminal or a supervisor
// may send it to the process and to its group.
const signalEcho = 500 * time.Millisecond

// drop forgets the signals that have come.
func drop(signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
		default:
			return
		}
	}
}

// run does what the arguments say until it is done or ctx ends, and answers
// the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	parsed := false
	root := newRoot(stdout, stderr, &parsed)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var usage cli.UsageError
	switch {
	case err == nil:
		return exitOK
	case !parsed, errors.As(err, &usage):
		fmt.Fprintf(stderr, "licet: %v\nlicet --help tells what can be said\n", err)
		return exitUsage
	default:
		fmt.Fprintf(stderr, "licet: %v\n", err)
		return exitFailed
	}
}

func badUsage(format string, args ...any) error { return cli.BadUsage(format, args...) }
