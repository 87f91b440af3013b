package depth

import "runtime/debug"

// CollectLess makes garbage collections rarer, since they take a fifth of the processor time of tests with small heaps.
// With the race detector it changes nothing: the detector's shadow of a larger heap takes more time than the
// collections.
func CollectLess() {
	if !Raced() {
		debug.SetGCPercent(400)
	}
}
