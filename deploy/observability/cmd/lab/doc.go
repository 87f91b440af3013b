// Command lab runs package deploy/observability/lab until it is stopped: a service under load with a Prometheus beside
// it, to look at real series.
//
//	make lab
//
// The map of the package:
//
//	main.go  the program
package main
