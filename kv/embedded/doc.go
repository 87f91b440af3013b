// Package embedded runs etcd inside this process, as a cluster of one, and owns its data directory. licet dev uses it;
// licet serve connects to a cluster instead (package kv/internal/etcd).
//
// # Files
//
//	server.go     Server: start, stop, failures
//	failure.go    failures after which etcd gives up, such as a full disk
//	directory.go  the lock of a data directory, and who may enter it
//	sockets.go    the unix socket that the server listens on
//	log.go        etcd's log lines in the log of the process
package embedded
