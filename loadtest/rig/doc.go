// Package rig is what load tests start and ask: an etcd whose members are processes of
// their own, nodes in front of it, an API key, and the first licenses.
//
// Files:
//   - main.go: exit codes, and the frame of main
//   - etcd.go: an etcd cluster
//   - licet.go: the licet program, its subcommands and API keys
//   - node.go: a node in a process of its own
//   - grant.go, keys.go: many licenses, and a compact list of their keys
//   - memory.go: memory and processor time of processes
//   - metrics.go: the metrics of a node
//   - progress.go: what a program is doing, for people
//   - race_on.go, race_off.go: whether this program has the race detector
package rig
