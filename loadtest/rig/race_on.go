//go:build race

package rig

// RaceFlag is the flag of go build for the race detector if this program was built with the race detector, and else
// empty. The programs that tests build have the same flag, since the build cache then has all packages.
const RaceFlag = "-race"
