// Package deliveries keeps in etcd what becomes of messages to endpoints of webhooks: how far each endpoint is, the
// messages that wait or were given up, a log of what was delivered, and replays. It also says which node delivers to
// which endpoint. Package kv explains the guarantees, under Deliveries.
//
// # Files
//
//	deliveries.go  Store: endpoints, progress, listings, replays
//	workers.go     workers under a lease, and their claims on endpoints
//	hold.go        a claim that is held, and what its holder reads
//	checkpoint.go  what a holder has done, stored in one transaction or several
//	steps.go       the transactions of one checkpoint
//	sweep.go       what is left of deleted endpoints
package deliveries
