package licensing_test

import (
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"

	"licet/licensing"
)

// diffOf compares two results, with what their methods return.
func diffOf(want, got licensing.Result) string {
	return cmp.Diff(want, got, cmp.AllowUnexported(licensing.Result{}))
}

// TestSizes bounds the values that each activation copies from function to function and allocates: at 3 KiB a Result, a
// re-activation took a fifth more processor time than at 1 KiB. What activations don't need belongs behind a pointer.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		name       string
		size, most uintptr
	}{
		{"Result", unsafe.Sizeof(licensing.Result{}), 1024},
		{"License", unsafe.Sizeof(licensing.License{}), 728},
		{"Device", unsafe.Sizeof(licensing.Device{}), 128},
		{"Order", unsafe.Sizeof(licensing.Order{}), 1232},
		{"Record", unsafe.Sizeof(licensing.Record{}), 320},
	} {
		if c.size > c.most {
			t.Errorf("a %s takes %d bytes, want at most %d", c.name, c.size, c.most)
		}
	}
}
