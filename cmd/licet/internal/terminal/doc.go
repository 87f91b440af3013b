// Package terminal talks to a person at a terminal: it shows progress and colors, asks before changes that can't be
// undone, and reads secrets without an echo. If the streams are no terminal, the package prints and asks nothing.
//
// The map of the package:
//
//	terminal.go  questions and secrets
//	meter.go     progress
//	style.go     colors, and the width of a terminal
package terminal
