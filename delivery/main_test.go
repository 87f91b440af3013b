package delivery

import (
	"os"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"

	"licet/internal/depth"
)

func TestMain(m *testing.M) {
	// Tests mostly wait for timers. Each has an etcd of its own, since workers that share an etcd share endpoints.
	depth.Parallel(16)
	depth.CollectLess()
	wal.SegmentSizeBytes = 1 << 20 // otherwise each etcd allocates 128 MB for its log
	os.Exit(m.Run())
}
