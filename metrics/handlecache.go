package metrics

import (
	"maps"
	"sync/atomic"
)

// handleCache caches the handle of each set of labels, because WithLabelValues costs more than counting.
// There are few sets of labels; see the package comment.
type handleCache[Labels comparable, Handle any] struct {
	find  func(Labels) Handle
	known atomic.Pointer[map[Labels]Handle] // replaced, never modified
}

// get returns the handle of a set of labels.
func (h *handleCache[Labels, Handle]) get(labels Labels) Handle {
	known := h.known.Load()
	if known != nil {
		if handle, ok := (*known)[labels]; ok {
			return handle
		}
	}
	handle := h.find(labels)
	grown := map[Labels]Handle{labels: handle}
	if known != nil {
		maps.Copy(grown, *known)
	}
	// If another goroutine has replaced known first, the next call for these labels caches the handle.
	h.known.CompareAndSwap(known, &grown)
	return handle
}
