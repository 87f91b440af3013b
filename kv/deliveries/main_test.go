package deliveries

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"licet/kv/embedded"
	"licet/kv/embedded/embeddedtest"
)

func TestMain(m *testing.M) {
	code, err := withServer(m)
	if err == nil && code == 0 {
		err = goleak.Find()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func withServer(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "licet-deliveries")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := embedded.StartTuned(ctx, dir, zerolog.Nop(), embeddedtest.Quick)
	if err != nil {
		return 1, err
	}
	defer server.Close()
	own.endpoints = server.Endpoints()
	own.client, err = clientv3.New(clientv3.Config{Endpoints: own.endpoints})
	if err != nil {
		return 1, err
	}
	defer own.client.Close()
	return m.Run(), nil
}
