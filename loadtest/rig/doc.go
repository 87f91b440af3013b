// Package rig starts single processes for load tests and reads their figures: an etcd whose members are processes of
// their own, the licet program, an API key, and the first licenses. It plays no load and compares no results. All load
// programs use it. Package loadtest/stage puts these processes together to a service. Package internal/process starts
// the child processes; package internal/etcdtest has clusters for tests.
//
// Files:
//
//	main.go      exit codes, signals, and errors in a command line, of all load programs
//	etcd.go      an etcd cluster
//	licet.go     the licet program, its subcommands and API keys
//	node.go      a node in a process of its own
//	each.go      calling a function for each number below a bound; reading a list to its end
//	grant.go     granting many licenses
//	keys.go      a compact list of license keys
//	memory.go    memory and processor time of processes, from /proc
//	metrics.go   reading and parsing the metrics of a node
//	progress.go  the line on a terminal that shows what a program is doing
package rig
