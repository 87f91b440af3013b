// Package deliveries stores the deliveries to webhook endpoints in etcd: the position of each endpoint in the feed, the
// messages that wait or were given up, a log of delivered messages, and replays. Package kv explains the guarantees,
// under Deliveries.
//
// The package also stores claims: a claim is a key, under the lease of a node, that says which node delivers to an
// endpoint. The node holds the endpoint as long as the claim exists; hold.go has the type of a held claim. A checkpoint
// stores the results that a holder has not stored yet.
//
// Package delivery decides when to send which message. The records of endpoints are in package kv (webhooks.go), and
// the keys and values of all this in package kv/internal/layout.
//
// # Files
//
//	deliveries.go  Store: endpoints, progress, listings, replays
//	workers.go     workers under a lease, and their claims on endpoints
//	hold.go        a claim that this node holds, and what its holder reads
//	checkpoint.go  the results of a holder, stored in one transaction or several
//	steps.go       the transactions of one checkpoint
//	unreadable.go  values that can't be read, and what stands in for them
//	growth.go      how much more an owner stores after a transaction
//	sweep.go       removing the keys of deleted endpoints
package deliveries
