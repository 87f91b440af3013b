// Package deliveries stores the deliveries to webhook endpoints in etcd: the position of each endpoint in the feed, the
// messages that wait or were given up, a log of delivered messages, and replays. Package kv explains the guarantees,
// under Deliveries.
//
// The package also stores leases: a lease on an endpoint is a key that says which worker delivers to the endpoint. The
// key is attached to the worker's etcd lease and ends with the etcd lease; holder.go has the type of a lease's holder.
// A checkpoint stores the results that a holder has not stored yet.
//
// Package delivery decides when to send which message. The records of endpoints are in package kv, and
// the keys and values of all this in package kv/internal/layout. The interface that this package implements is
// delivery.Store, with types of package node/store.
//
// # Files
//
//	deliveries.go  Store: endpoints, progress, listings, replays
//	workers.go     workers, and their leases on endpoints
//	holder.go      a lease that this node holds, and what its holder reads
//	checkpoint.go  the results of a holder, stored in one transaction or several
//	steps.go       the transactions of one checkpoint
//	unreadable.go  values that can't be read, and what stands in for them
//	growth.go      how many more bytes and keys an owner stores after a transaction
//	sweep.go       removing the keys of deleted endpoints
package deliveries
