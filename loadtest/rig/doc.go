// Package rig is what load tests stand on: an etcd whose members are processes
// of their own, nodes before it, an API key, licenses to begin with, and a
// word on how far all that is.
//
// A program that uses it is its own etcd: it is started again as each member, and
// calls [BeEtcd] before anything else, as [Main] does. So a load test needs Go and
// nothing that was installed before.
//
// It ends processes by their id only. Members of etcd end with the program that
// has started them, however that ends.
package rig
