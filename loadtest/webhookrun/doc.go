// Webhookrun delivers the events of a shop to webhook endpoints from three nodes, which
// are killed and started again all the time, and then proves that every event was
// delivered and none was made up. One endpoint answers, one fails a fifth of the calls,
// and one hangs. See the README one folder up.
//
// Files:
//   - main.go, config.go: the program and its flags
//   - plan.go: what the customers will do, from a seed
//   - run.go: the run
//   - customers.go, journal.go: what the customers do, and what was acknowledged
//   - havoc.go: kills
//   - receivers.go: the endpoints
//   - delivering.go: the time in which the rest is delivered
//   - feed.go: the feed of events
//   - audit.go, judging.go: the comparison and the report
package main
