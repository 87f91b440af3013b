package kvtest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
)

// Await waits until done returns true.
func Await(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not hold within 2 minutes")
		}
	}
}

// Read reads from a store, and again while the store is unavailable: on a busy machine, etcd may answer only after the
// limit of a request.
func Read[T any](read func() (T, error)) (T, error) {
	for until := time.Now().Add(2 * time.Minute); ; {
		value, err := read()
		if !errors.Is(err, licensing.ErrUnavailable) || time.Now().After(until) {
			return value, err
		}
	}
}

// Context returns a context that ends after a time, and with the test.
func Context(t testing.TB, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	t.Cleanup(cancel)
	return ctx
}

// ShortTempDir returns a directory that goes with the test. Its path is short enough for a Unix socket; that of
// t.TempDir carries the test's long name.
func ShortTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Metrics returns instruments of their own.
func Metrics() *metrics.Metrics { return metrics.New(prometheus.NewRegistry(), "test", "", "") }

// Ring returns a ring with the master keys m1 and m2.
func Ring(t *testing.T) keyring.MasterRing {
	t.Helper()
	m1 := Must(keyring.NewMasterKey("m1", [keyring.MasterKeySize]byte{1}))(t)
	m2 := Must(keyring.NewMasterKey("m2", [keyring.MasterKeySize]byte{2}))(t)
	return Must(keyring.ParseMasterRing(m1.Line() + "\n" + m2.Line()))(t)
}
