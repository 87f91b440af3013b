package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"licet/deploy/observability/lab"
	"licet/loadtest/rig"
)

func main() { rig.Main(run) }

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 2 {
		fmt.Fprintln(stderr, "usage: lab FOLDER-OF-THE-REPOSITORY FOLDER-WITH-PROMETHEUS")
		return 2
	}
	repository, err := filepath.Abs(args[0])
	if err != nil {
		fmt.Fprintln(stderr, err)
		return 1
	}
	l, err := lab.Start(ctx, lab.Config{Repository: repository, Programs: args[1]})
	if err != nil {
		if ctx.Err() == nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	}
	defer l.Close()
	fmt.Fprintf(stdout, "Prometheus %s\nwith native histograms %s\n", l.Prometheus.URL, l.Native.URL)
	for i, n := range l.Stage.Nodes {
		fmt.Fprintf(stdout, "node %d http://%s, %s\n", i, n.Address, n.Metrics)
	}
	for i, endpoint := range l.Stage.Etcd.Endpoints {
		fmt.Fprintf(stdout, "etcd %d %s\n", i, endpoint)
	}
	fmt.Fprintln(stdout, "Ctrl-C ends it.")
	<-ctx.Done()
	if n, latest := l.Errors(); n > 0 {
		fmt.Fprintf(stderr, "the load met %d answers that it did not look for, the latest: %v\n", n, latest)
	}
	return 0
}
