package rig

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Main is a program that starts etcd: started again as a member, it is that, and
// otherwise the command, whose ctx ends when it is told to stop.
func Main(command func(ctx context.Context, args []string, stdout, stderr io.Writer) (exitCode int)) {
	if text := os.Getenv(MemberVariable); text != "" {
		fmt.Fprintln(os.Stderr, "etcd:", BeEtcd(text))
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}
