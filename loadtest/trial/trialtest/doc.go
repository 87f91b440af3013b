// Package trialtest helps the tests of load programs: they run a program against a real etcd and real nodes,
// and again with a fault put in, which the program must find.
//
// The map of the package:
//
//	trialtest.go  running a program with and without a fault
package trialtest
