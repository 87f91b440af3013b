package embeddedtest

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"licet/internal/depth"
	"licet/kv/embedded"
)

// Etcd is an etcd that all tests of a package share. Each test creates records of its own.
type Etcd struct {
	Endpoints []string
	Client    *clientv3.Client
}

// Main starts an etcd, passes it to begin, runs the tests of a package, and ends the process. A goroutine that goes on
// after the tests fails the run.
func Main(m *testing.M, begin func(context.Context, Etcd) error) {
	code, err := run(m, begin)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M, begin func(context.Context, Etcd) error) (int, error) {
	depth.CollectLess()
	dir, err := os.MkdirTemp("", "licet-etcd")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := embedded.StartTuned(ctx, dir, zerolog.Nop(), Quick)
	if err != nil {
		return 1, err
	}
	defer server.Close()
	client, err := connect(server)
	if err != nil {
		return 1, err
	}
	defer client.Close()
	if err := begin(ctx, Etcd{server.Endpoints(), client}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}
