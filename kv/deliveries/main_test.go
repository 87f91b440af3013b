package deliveries

import (
	"context"
	"testing"

	"licet/internal/depth"
	"licet/kv/embedded/embeddedtest"
)

// own is the etcd of all tests of the package.
var own embeddedtest.Etcd

func TestMain(m *testing.M) {
	depth.Parallel(4)
	embeddedtest.Main(m, func(_ context.Context, e embeddedtest.Etcd) error {
		own = e
		return nil
	})
}
