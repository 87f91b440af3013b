// Package backoff waits: for a fixed time, for a random time, and between the attempts of a repeated operation. Every
// wait ends with its context.
//
// The map of the package:
//
//	backoff.go  Sleep, SleepUnless, Around and Exponential
package backoff
