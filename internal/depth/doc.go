// Package depth says how deep tests go. At the usual depth a test runs every case with few seeds, few kills and small
// sizes. At full depth, with LICET_TEST_DEPTH=full as .ci/run sets it, the same test runs many seeds, many kills and
// large sizes, and tests that build programs run only then.
//
// The map of the package:
//
//	depth.go     the switch, and values by depth
//	parallel.go  how many parallel tests run at once, and the race detector
//	collect.go   how often garbage is collected
package depth
