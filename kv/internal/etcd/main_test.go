package etcd

import (
	"testing"

	"go.uber.org/goleak"

	"licet/internal/depth"
	"licet/internal/etcdtest"
)

func TestMain(m *testing.M) {
	etcdtest.Main()
	depth.Parallel(8) // they wait for probes
	goleak.VerifyTestMain(m)
}
