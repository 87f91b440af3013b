// Run puts a load on Licet with k6 and proves that no result was lost. It starts an etcd and nodes, or takes a service
// that runs already, grants licenses, has k6 run one of the scenarios in loadtest/scenarios, and kills, drains or
// restarts processes as the scenario demands. Then it reads everything back, and compares what was acknowledged with
// what is stored, one device and one order at a time. See the chapter "load" of loadtest/README.md.
//
// Package loadtest/compare measures speed; run measures only the thresholds of the scenarios. The scenarios are k6
// scripts in loadtest/scenarios and loadtest/lib. Package loadtest/webhooks compares the
// events of the scenario webhooks. loadtest/money makes its load in Go.
//
// Files:
//
//	main.go      the program
//	config.go    flags
//	scenario.go  scenarios.json: rate, duration, nodes and faults of each scenario
//	service.go   the service under load, and its first licenses
//	k6.go        running a k6 script
//	events.go    when to kill, drain or restart a process during the load
//	deeds.go     what an event does: kill, drain and restart processes, read their memory
//	journal.go   the journal that k6 writes: what the service has acknowledged
//	changes.go   the changes of a journal that must have an event
//	leases.go    leases that lapse during the load, and their limit at each moment
//	stored.go    reading licenses and orders back from the service
//	lists.go     reading lists of licenses and orders, and comparing these with single records
//	proof.go     comparing the journal with what is stored
//	results.go   the files of a run's results: the proof, licenses for k6
package main
