// Command trace-receiver is a minimal OpenTelemetry collector: it prints the spans that a node sends.
//
// The map of the package:
//
//	main.go  the program
package main
