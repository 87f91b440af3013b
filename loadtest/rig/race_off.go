//go:build !race

package rig

// RaceFlag is the flag of go build for the race detector where this program was
// built with it, and else empty. What tests build has it too, since with it
// everything is built already.
const RaceFlag = ""
