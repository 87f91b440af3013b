// Package embeddedtest starts embedded etcds for tests: in the test's process, in a temporary folder, without fsync.
//
// The map of the package:
//
//	embeddedtest.go  starting one
//	main.go          one for all tests of a package
package embeddedtest
