package node

import (
	"testing"
	"unsafe"
)

// TestCallSize bounds a call: each activation allocates one, and collecting the garbage is a good part of its time.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}); size > 1216 {
		t.Errorf("a call takes %d bytes, want at most 1,216", size)
	}
}
