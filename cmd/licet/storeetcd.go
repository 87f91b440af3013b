package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/kv/embedded"
	"licet/metrics/guard"
)

// withEtcdOf runs work while a child process runs the etcd of a data directory; see supervise. If etcd fails,
// withEtcdOf ends the context of the work and returns the failure.
func withEtcdOf(
	ctx context.Context, dir string, log zerolog.Logger, stderr io.Writer,
	work func(ctx context.Context, endpoint string) error,
) (err error) {
	// Starting etcd would create a store in a misspelled directory.
	if !embedded.HasStore(dir) {
		return fmt.Errorf("there is no store in %s", dir)
	}
	working, cancel := context.WithCancel(ctx)
	defer cancel()
	serving, stop := context.WithCancel(context.Background()) // etcd outlives the work
	defer stop()
	endpoint, ended, failure := make(firstLine, 1), make(chan struct{}), errPanicked
	guard.New(nil, log).Start("etcd of the data directory", func() {
		defer close(ended)
		defer cancel()
		failure = superviseEtcd(serving, dir, endpoint, stderr)
	})
	select {
	case address := <-endpoint:
		err = work(working, address)
	case <-working.Done():
		err = ctx.Err()
	}
	stop()
	<-ended
	if failure != nil {
		return failure
	}
	return err
}

// superviseEtcd runs the etcd of a data directory in a child process until ctx ends. It returns what the child reports.
func superviseEtcd(ctx context.Context, dir string, stdout, stderr io.Writer) error {
	var said strings.Builder
	err := supervise(ctx, childEtcd, dir, []string{"store", runEtcd, dir}, stdout, stderr, &said)
	if code := exitCode(0); errors.As(err, &code) {
		return errors.New(strings.TrimPrefix(strings.TrimSpace(said.String()), "licet: "))
	}
	return err
}

// firstLine receives the one line that a child process prints.
type firstLine chan string

func (f firstLine) Write(line []byte) (int, error) {
	f <- strings.TrimSpace(string(line))
	return len(line), nil
}

// runEtcd is the command of the child process.
const runEtcd = "run-etcd"

// newRunEtcdCommand returns the command that runs the etcd of a data directory and prints its address.
func newRunEtcdCommand(stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:    runEtcd + " DATA-DIR",
		Short:  "Run the etcd of a data directory for another command",
		Hidden: true,
		Args:   cli.Arguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			return embedded.WithAdvice(serveEtcd(cmd.Context(), args[0], stdout, stderr), args[0])
		},
	}
}

func serveEtcd(ctx context.Context, dir string, stdout, stderr io.Writer) (err error) {
	lock, err := embedded.LockDir(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	etcd, err := embedded.Start(ctx, dir, newStoreLog(markedLog{stderr}, isTerminal(stderr)))
	if err != nil {
		return err
	}
	defer etcd.Close()
	if _, err := fmt.Fprintln(stdout, etcd.Endpoints()[0]); err != nil {
		return fmt.Errorf("print the address of etcd: %w", err)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-etcd.Err():
		return err
	}
}
