// Package process runs nodes and members of etcd as child processes, for load tests and for tests of clusters.
//
// A program that starts members of etcd is its own etcd: [StartEtcd] runs the same program once more, and that process
// calls [BeEtcd] before anything else. So neither load tests nor tests need an installed etcd.
//
// Processes are ended by their ids only. A member of etcd ends with the program that started it, however that program
// ends.
//
// Package internal/etcdtest builds clusters for tests on it, package loadtest/rig nodes and clusters for load tests,
// and cmd/licet an etcd of a data directory in its own way (supervise.go).
//
// Files:
//
//	build.go  the executable of a node
//	child.go  a child process: start, end, kill, signal, its log
//	etcd.go   a member of etcd as a child process
package process
