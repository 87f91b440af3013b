package metrics

import (
	"maps"
	"sync/atomic"
)

// handles remembers what there is for a set of labels, since to find it anew costs
// more than to count. Sets of labels are few; see the package comment.
type handles[Labels comparable, Handle any] struct {
	find  func(Labels) Handle
	known atomic.Pointer[map[Labels]Handle] // replaced, never changed
}

func (h *handles[Labels, Handle]) of(labels Labels) Handle {
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
	// Where another one was first, the next one to ask remembers.
	h.known.CompareAndSwap(known, &grown)
	return handle
}
