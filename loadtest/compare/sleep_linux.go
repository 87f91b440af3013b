package main

import (
	"syscall"
	"time"
)

// sleepUntil waits for a moment to within some ten microseconds. The runtime's
// own timers are late by up to a millisecond on an idle machine, which would
// hide what an open loop is there to show.
func sleepUntil(at time.Time) {
	for wait := time.Until(at); wait > 0; wait = time.Until(at) {
		span := syscall.NsecToTimespec(int64(wait))
		_ = syscall.Nanosleep(&span, nil) // a signal ends it early; then it goes on
	}
}
