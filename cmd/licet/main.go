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
	// The log has the time format of the API: milliseconds, UTC.
	zerolog.TimeFieldFormat = "2006-01-02T15:04:05.000Z07:00"
	zerolog.TimestampFunc = func() time.Time { return time.Now().UTC() }

	// gRPC would write its own log to stderr. Errors of calls reach licet anyway.
	grpclog.SetLoggerV2(grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard))

	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM)
	if supervised() {
		signal.Notify(make(chan os.Signal, 1), os.Interrupt) // Ctrl-C reaches the parent too, which decides
		go obey(os.Stdin, signals)
	} else {
		signal.Notify(signals, os.Interrupt)
	}
	go func() {
		<-signals
		cancel()
		time.Sleep(signalEcho)
		drop(signals)
		<-signals
		fmt.Fprintln(os.Stderr, "licet: stopping at once on the second signal")
		os.Exit(exitFailed)
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// signalEcho is how long repetitions of the first signal are ignored: a terminal or a supervisor may send a signal both
// to the process and to its group.
const signalEcho = 500 * time.Millisecond

// drop discards the signals that have arrived.
func drop(signals <-chan os.Signal) {
	for {
		select {
		case <-signals:
		default:
			return
		}
	}
}

// run runs the command that args name until the command ends or ctx is done, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	started := false
	root := newRoot(args, stdout, stderr, &started)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = misnamed(cmd)
	}
	var code exitCode
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(stderr, "licet: %v\n", err)
	var usage cli.UsageError
	if started && !errors.As(err, &usage) {
		return exitFailed
	}
	fmt.Fprint(stderr, cli.Hint(cmd, err))
	return exitUsage
}

// badUsage returns an error that ends the process with exitUsage.
func badUsage(format string, args ...any) error { return cli.BadUsage(format, args...) }
