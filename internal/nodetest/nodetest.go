package nodetest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/depth"
	"licet/kv"
	"licet/kv/embedded/embeddedtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
	"licet/node/store/storetest"
)

// endpointsVariable is the environment variable with the endpoints of the etcd.
const endpointsVariable = "LICET_NODETEST_ENDPOINTS"

// Endpoints returns the endpoints of an embedded etcd that all tests of a package share. Each test
// creates records of its own.
func Endpoints() []string { return strings.Split(os.Getenv(endpointsVariable), ",") }

// Main starts the etcd, runs the tests of a package, and ends the process. Tests run in parallel if they mostly wait.
func Main(m *testing.M) {
	depth.Parallel(8)
	embeddedtest.Main(m, func(ctx context.Context, etcd embeddedtest.Etcd) error {
		if err := os.Setenv(endpointsVariable, strings.Join(etcd.Endpoints, ",")); err != nil {
			return err
		}
		return openEpoch(ctx)
	})
}

// openEpoch begins the first epoch of events, as a node does when it starts.
func openEpoch(ctx context.Context) error {
	store, err := kv.Open(ctx, StoreConfig())
	if err != nil {
		return err
	}
	return errors.Join(store.OpenEpoch(ctx), store.Close())
}

// StoreConfig returns the configuration of a store on the etcd.
func StoreConfig() kv.Config {
	return kv.Config{
		Endpoints: Endpoints(),
		Metrics:   metrics.New(prometheus.NewRegistry(), "test", "", ""),
		Log:       zerolog.Nop(),
	}
}

// What tests use that need nothing else.
var (
	Owner       = licensing.Owner{AccountID: "acct_test", Mode: licensing.Test}
	LicenseKeys = storetest.Keys()
)

// OwnEtcd starts an etcd that only this test uses, for tests that change or read the records of all accounts. It
// returns the configuration of a store on that etcd, and runs the test in parallel with other tests.
func OwnEtcd(t *testing.T) kv.Config {
	t.Helper()
	t.Parallel()
	cfg := StoreConfig()
	cfg.Endpoints = embeddedtest.Start(t, t.TempDir()).Endpoints()
	return cfg
}

// Ring returns the master keys m1 and m2. Tests on the shared etcd use no others: each node needs all keys in use.
func Ring(t *testing.T) keyring.MasterRing {
	t.Helper()
	ring, err := keyring.ParseMasterRing("m1:" + strings.Repeat("A", 43) + "=\nm2:" + strings.Repeat("B", 42) + "A=")
	if err != nil {
		t.Fatal(err)
	}
	return ring
}

// OpenStore opens a store. The end of the test closes it.
func OpenStore(t *testing.T) *kv.Store {
	t.Helper()
	return OpenWith(t, StoreConfig())
}

// OpenWith opens a store with a configuration.
func OpenWith(t *testing.T, cfg kv.Config) *kv.Store {
	t.Helper()
	store, err := kv.Open(Context(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	// OpenEpoch also reads which owners listen to activations: some tests subscribe.
	if err := store.OpenEpoch(Context(t)); err != nil {
		t.Fatal(err)
	}
	return store
}

// NewOwner returns a new account that no other test uses.
func NewOwner(mode licensing.Mode) licensing.Owner {
	return licensing.Owner{AccountID: "acct_" + ulid.Make().String(), Mode: mode}
}

// New returns a service on a store. change may alter its configuration. If the store is a storetest.Faulty, the end of
// the test waits for its calls before the store closes.
func New(t *testing.T, store store.Store, change ...func(*service.Config)) *service.Service {
	t.Helper()
	if s, ok := store.(interface{ WaitForCalls() }); ok {
		t.Cleanup(s.WaitForCalls)
	}
	cfg := service.Config{
		Config: node.Config{
			Records:     store,
			Queries:     store,
			LicenseKeys: LicenseKeys,
			Clock:       time.Now,
			Metrics:     metrics.New(prometheus.NewRegistry(), "test", "", ""),
			Log:         zerolog.Nop(),
		},
		Keys:       store,
		Sweeps:     store,
		Events:     store,
		Ring:       Ring(t),
		SweepEvery: time.Millisecond,
		Entropy:    rand.Reader,
	}
	for _, c := range change {
		c(&cfg)
	}
	return service.New(cfg)
}

// Context returns a context that ends with the test, after the cleanups that the test registers later.
func Context(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return ctx
}

// Grant creates a license with a device limit.
func Grant(t *testing.T, n *service.Service, maxDevices int) licensing.LicenseKey {
	t.Helper()
	licenses, _, err := n.Grant(Context(t), Owner, service.Grant{ProductID: "pro", Quantity: 1,
		MaxDevices: &maxDevices})
	if err != nil {
		t.Fatal(err)
	}
	return licenses[0].License.Key
}

// Activate binds a device.
func Activate(
	ctx context.Context, n *service.Service, key licensing.LicenseKey, device string,
) (licensing.Result, error) {
	return n.Activate(ctx, licensing.Activate{Target: licensing.Target{Key: key}, Device: device})
}

// Devices returns how many devices a license has, and their ids.
func Devices(t *testing.T, n *service.Service, key licensing.LicenseKey) (count int, ids map[string]bool) {
	t.Helper()
	view, err := n.License(Context(t), Owner, key, store.DevicePage{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	ids = map[string]bool{}
	for _, d := range view.Devices {
		ids[d.ID] = true
	}
	return view.License.CurrentDevices, ids
}

// WantError reports an error other than the wanted one.
func WantError(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (want == nil && got != nil) {
		t.Errorf("got %v, want %v", got, want)
	}
}
