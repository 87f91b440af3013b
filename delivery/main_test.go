package delivery

import (
	"os"
	"testing"

	"licet/internal/depth"
)

func TestMain(m *testing.M) {
	// Tests mostly wait for timers. Each has an etcd of its own, since workers that share an etcd share endpoints.
	depth.Parallel(8)
	os.Exit(m.Run())
}
