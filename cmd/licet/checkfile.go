package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"licet/cmd/licet/internal/cli"
	"licet/kv/embedded"
)

// checkFileCommand is the name of the hidden command that checkFile runs.
const checkFileCommand = "check-etcd-file"

func newCheckFileCommand() *cobra.Command {
	return &cobra.Command{
		Use:    checkFileCommand + " DATA-DIR",
		Hidden: true, // licet dev runs it
		Args:   cli.Arguments,
		RunE:   func(_ *cobra.Command, args []string) error { return embedded.CheckFile(args[0]) },
	}
}

// checkFile returns an error if etcd's database in a data directory is damaged. A second process of this program reads
// the database: a panic or a memory fault ends only that process.
func checkFile(ctx context.Context, dir string) error {
	if !embedded.HasStore(dir) {
		return nil
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program: %w", err)
	}
	var stderr strings.Builder
	cmd := exec.CommandContext(ctx, program, checkFileCommand, dir)
	cmd.Stderr = &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return embedded.NewFailure(ctx.Err())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("run %s %s: %w", program, checkFileCommand, err)
	}
	if err != nil {
		first, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "licet: "), "\n")
		return embedded.NewFailure(fmt.Errorf("its database is damaged: %s", first))
	}
	return nil
}
