// Package kvtest contains what the tests of kv and of the packages below kv share: records with every field set, waits,
// and an etcd client whose writes fail as a script says.
//
// The map of the package:
//
//	kvtest.go   records with every field set
//	helpers.go  waits, contexts, folders, metrics and a ring of master keys
//	counted.go  the value of a counter
//	faults.go   an etcd client whose writes fail
//	modes.go    checks of files
package kvtest
