package delivery

import (
	"maps"
	"slices"
)

// held are the endpoints that an engine delivers to.
func (e *Engine) heldLoops() []*endpointLoop {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.loops))
}

// claimed are their ids.
func (e *Engine) claimedIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.loops))
}
