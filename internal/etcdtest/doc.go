// Package etcdtest runs etcd clusters of several members for tests. Each member is a process of its own
// ([licet/internal/process]), so that a test can kill it, stop it, isolate it from the others and restart it. The
// process is the test binary itself: see [Main]. Tests that need only one etcd, in their own process, use
// kv/embedded/embeddedtest.
//
//	cluster.go       clusters and their members
//	ballast.go       keys that fill an etcd
//	network.go       the connections between members, which a test can cut
//	certificates.go  a certificate authority for tests
package etcdtest
