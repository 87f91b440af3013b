//go:build !linux

package main

import "time"

// sleepUntil waits for a moment, as exactly as the runtime can. What is
// measured needs Linux anyway, for /proc.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
