// Webhookrun delivers the events of a shop to webhook endpoints from three nodes, which it kills and starts again all
// the time. Then it proves that every event was delivered, and that no event was made up. One endpoint answers, one
// fails a fifth of the calls, and one hangs. See the chapter "webhook run" of loadtest/README.md.
//
// Files:
//
//	main.go        the program
//	config.go      flags
//	plan.go        what the customers will do, from a seed: licenses, some of them shared, and their devices
//	run.go         the run, from start to report
//	customers.go   what the customers do
//	journal.go     which changes were acknowledged, and so must have an event
//	havoc.go       killing nodes
//	receivers.go   the HTTP servers behind the endpoints
//	delivering.go  waiting until the remaining events are delivered
//	feed.go        following the feed of events during the run
//	audit.go       the evidence of a run: comparing changes, feed and deliveries
//	verdict.go     the verdict and the report
package main
