//go:build race

package main

// raceFlag is how the node is built in tests.
const raceFlag = "-race"
