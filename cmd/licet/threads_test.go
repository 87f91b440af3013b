package main

import "testing"

// TestThreads checks that a process with a whole machine gets more threads than cores, unless the environment or a
// quota sets the number.
func TestThreads(t *testing.T) {
	for _, c := range []struct {
		name             string
		environment      string
		byRuntime, cores int
		want             int
	}{
		{"a whole machine", "", 2, 2, 4},
		{"one core", "", 1, 1, 2},
		{"a larger one", "", 16, 16, 32},
		{"the environment says less", "1", 1, 2, 0},
		{"the environment says more", "8", 8, 2, 0},
		{"the environment says the same", "2", 2, 2, 0},
		{"a quota", "", 2, 16, 0},
	} {
		lookup := func(name string) (string, bool) { return c.environment, name == "GOMAXPROCS" && c.environment != "" }
		if got := threads(lookup, c.byRuntime, c.cores); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}
