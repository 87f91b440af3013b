package node_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"licet/kv"
	"licet/licensing"
	"licet/metrics"
	"licet/node"
	"licet/node/store"
)

// endpoints are those of one embedded etcd for all tests of the package; each
// makes records of its own.
var endpoints []string

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
	dir, err := os.MkdirTemp("", "licet-node")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	etcd, err := kv.StartEmbedded(ctx, dir, zerolog.Nop())
	if err != nil {
		return 1, err
	}
	defer etcd.Close()
	endpoints = etcd.Endpoints()
	if err := openEpoch(ctx); err != nil {
		return 0, err
	}
	return m.Run(), nil
}

// openEpoch begins the first epoch of events, as a process does that starts a node.
func openEpoch(ctx context.Context) error {
	store, err := kv.Open(ctx, storeConfig())
	if err != nil {
		return err
	}
	return errors.Join(store.OpenEpoch(ctx), store.Close())
}

func storeConfig() kv.Config {
	return kv.Config{
		Endpoints: endpoints,
		Metrics:   metrics.New(prometheus.NewRegistry(), "test", "", ""),
		Log:       zerolog.Nop(),
	}
}

var (
	testOwner = licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}
	testCheck = licensing.NewKeyCheck([]byte("check key"))
)

func openStore(t *testing.T) *kv.Store {
	t.Helper()
	return openWith(t, storeConfig())
}

func openWith(t *testing.T, cfg kv.Config) *kv.Store {
	t.Helper()
	store, err := kv.Open(testContext(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	// It learns who listens to activations, as a node's does: some tests subscribe.
	if _, err := store.EventEpoch(testContext(t)); err != nil {
		t.Fatal(err)
	}
	return store
}

// newOwner makes an account that no other test, or run of it, knows of.
func newOwner(mode licensing.Mode) licensing.Owner {
	return licensing.Owner{AccountID: "acct_" + ulid.Make().String(), Mode: mode}
}

// newNode makes a node over a store; change may alter its configuration.
func newNode(t *testing.T, store store.Store, change ...func(*node.Config)) *node.Node {
	t.Helper()
	cfg := node.Config{
		Store:    store,
		KeyCheck: testCheck,
		Clock:    time.Now,
		Entropy:  rand.Reader,
		Metrics:  metrics.New(prometheus.NewRegistry(), "test", "", ""),
		Log:      zerolog.Nop(),
	}
	for _, c := range change {
		c(&cfg)
	}
	return node.New(cfg)
}

func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// grant makes a license that allows so many devices.
func grant(t *testing.T, n *node.Node, maxDevices int) licensing.LicenseKey {
	t.Helper()
	licenses, _, err := n.Grant(testContext(t), testOwner, node.Grant{ProductID: "pro", Quantity: 1, MaxDevices: &maxDevices})
	if err != nil {
		t.Fatal(err)
	}
	return licenses[0].License.Key
}

func activate(ctx context.Context, n *node.Node, key licensing.LicenseKey, device string) (licensing.Result, error) {
	return n.Activate(ctx, licensing.Activate{Target: licensing.Target{Key: key}, Device: device})
}

func devices(t *testing.T, n *node.Node, key licensing.LicenseKey) (count int, ids map[string]bool) {
	t.Helper()
	view, err := n.License(testContext(t), testOwner, key, store.DevicePage{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ids = map[string]bool{}
	for _, d := range view.Devices {
		ids[d.ID] = true
	}
	return view.License.CurrentDevices, ids
}

func wantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Errorf("got %v, want %v", got, want)
	}
}
