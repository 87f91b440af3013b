//go:build race

package main

// raceFlag is how the nodes are built in tests.
const raceFlag = "-race"
