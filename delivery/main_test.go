package delivery

import (
	"os"
	"runtime/debug"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"licet/internal/depth"
)

func TestMain(m *testing.M) {
	// Tests mostly wait for timers. Each has an etcd of its own, since workers that share an etcd share endpoints.
	depth.Parallel(depth.Of(16, 8))
	debug.SetGCPercent(400)        // heaps are small
	wal.SegmentSizeBytes = 1 << 20 // otherwise each etcd allocates 128 MB for its log
	os.Exit(m.Run())
}
