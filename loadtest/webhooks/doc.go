// Package webhooks is three webhook endpoints of an account, and a client that follows the account's feed of events,
// while a load changes orders and licenses and nodes are killed. Package webhooks proves that each acknowledged change
// has one event, that every event was delivered, and that no event was made up. One endpoint answers, one fails a fifth
// of the calls, and one hangs. See the chapter "webhook run" of loadtest/README.md. The load, and the kills during the
// load, are those of the program loadtest/run.
//
// Files:
//
//	endpoints.go   the endpoints, from their creation to the audit
//	receivers.go   the HTTP servers behind the endpoints
//	delivering.go  waiting until the remaining events are delivered
//	feed.go        reading the feed of events, and following the feed
//	audit.go       comparing changes, feed and deliveries
package webhooks
