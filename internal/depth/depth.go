package depth

import (
	"os"
	"testing"
)

// variable is the environment variable that sets the depth: full, or anything else for the usual depth.
const variable = "LICET_TEST_DEPTH"

// Full reports whether tests run at full depth.
func Full() bool { return os.Getenv(variable) == "full" }

// Of returns full at full depth, and usual otherwise.
func Of[T any](usual, full T) T {
	if Full() {
		return full
	}
	return usual
}

// NeedFull skips a test that builds a program, which takes up to a minute, unless tests run at full depth.
func NeedFull(t testing.TB) {
	t.Helper()
	if !Full() {
		t.Skip("builds a program: " + variable + "=full")
	}
}

// NotRaced skips a test with the race detector. It is for tests that repeat what other tests run, or that are about
// sizes and counts, or that start no goroutine: they take minutes with the detector, and show it nothing new.
func NotRaced(t testing.TB) {
	t.Helper()
	if Raced() {
		t.Skip("repeats what other tests run with the race detector")
	}
}
