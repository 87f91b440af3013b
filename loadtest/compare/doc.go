// Compare measures Licet against the etcd that it keeps its data in: both on this
// machine, in one run, in turns. It prints a table of what was promised and what was
// measured, and one line of JSON. See the README one folder up.
//
// Files:
//   - main.go, config.go: the program and its flags
//   - rows.go, report.go: what is promised, and the table
//   - lab.go: a store with the nodes that are measured on it
//   - rounds.go: the rows that are compared with single puts and gets of etcd
//   - storm.go, guessing.go: rounds with a storm on one license, and of made-up keys
//   - sweep.go: the best number of operations at a time
//   - growth.go, footprint.go: large licenses, members, memory
//   - placement.go: several nodes
//   - eventson.go, backlog.go, sink.go: events and deliveries
//   - fair.go: one account against another
//   - soak.go: a long run
//   - capacity.go, capacitycare.go, fill.go: a full store, and an operator's tasks with it
//   - seed.go, request.go: licenses, devices and their requests
//   - loop.go, fleet.go, conn.go, poller_linux.go: the load generator
//   - etcdload.go: the baseline
//   - facts.go, machine.go: what nodes and the machine report
package main
