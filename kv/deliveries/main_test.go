package deliveries

import (
	"context"
	"testing"

	"licet/kv/embedded/embeddedtest"
)

// own is the etcd of all tests of the package.
var own embeddedtest.Etcd

func TestMain(m *testing.M) {
	embeddedtest.Main(m, func(_ context.Context, e embeddedtest.Etcd) error {
		own = e
		return nil
	})
}
