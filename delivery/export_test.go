package delivery

import (
	"maps"
	"slices"
)

// heldLoops returns the loops of an engine.
func (e *Engine) heldLoops() []*endpointLoop {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.loops))
}

// leasedIDs returns the ids of the endpoints that an engine delivers to.
func (e *Engine) leasedIDs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.loops))
}
