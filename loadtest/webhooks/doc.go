// Webhookrun delivers the events of a shop to webhook endpoints from three nodes, which it kills and starts again all
// the time. Then it proves that every event was delivered, and that no event was made up. One endpoint answers, one
// fails a fifth of the calls, and one hangs. See the chapter "webhook run" of loadtest/README.md.
//
// The plan is a list of customers: each buys a license, or uses a license that customers share, and activates it on
// devices, some of which are removed again. The command line and the report's frame are in loadtest/trial; nodes,
// balancer and browser in loadtest/stage.
//
// Files:
//
//	main.go        the program
//	config.go      flags
//	plan.go        what each customer will do, from a seed
//	run.go         the run, from start to report
//	customers.go   the customers carry out the plan: orders, activations, removals
//	journal.go     which changes were acknowledged, and so must have an event
//	receivers.go   the HTTP servers behind the endpoints
//	delivering.go  waiting until the remaining events are delivered
//	feed.go        reading the feed of events, and following the feed
//	audit.go       the evidence of a run: comparing changes, feed and deliveries
//	verdict.go     the verdict and the report
package main
