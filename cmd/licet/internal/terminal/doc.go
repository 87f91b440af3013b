// Package terminal talks to a person at a terminal: it shows progress, asks before changes that can't be undone, and
// reads secrets without an echo. If the streams are no terminal, the package prints and asks nothing.
//
// The map of the package:
//
//	terminal.go  questions and secrets
//	meter.go     progress
package terminal
