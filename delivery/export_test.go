package delivery

import (
	"maps"
	"slices"
)

// held are the endpoints that an engine delivers to.
func (e *Engine) held() []*route {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Collect(maps.Values(e.routes))
}

// claimed are their ids.
func (e *Engine) claimed() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.routes))
}
