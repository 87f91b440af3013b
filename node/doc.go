// Package node is the engine: a [Node] runs commands on records. A node keeps no state of its own except caches: the
// records are in a [store.Store], and any number of nodes may share one store.
//
// Each license and each order is an actor: a node has one mailbox for each record, and one turn runs at a time.
// Commands that wait for the same record are folded: they run one by one through licensing.Apply on one snapshot,
// and one compare-and-swap stores their combined change. If another node was first, the swap returns the record that
// the other node wrote, and the node folds the commands again on that record. The node answers no command before the
// store has reported that the swap landed, so a node may die at any moment and nothing acknowledged is lost.
//
// A mailbox exists only while commands wait in it; an idle license costs nothing.
//
// The words of this package:
//
//	admission   a command needs a place before it enters a mailbox; places are limited by node and by owner
//	turn        one run of a mailbox: fold the waiting commands on a snapshot, swap, answer
//	snapshot    a record as the store returned or remembers it
//	swap        a compare-and-swap of one or several records
//	claim       the record of an Idempotency-Key and of the result of its request
//	record lock keeps a mailbox from running commands while a task changes several records
//	hop         run a command on another node, because that node writes the license (placement)
//
// Package node knows no use case and no HTTP: node/service is built on the engine, handlers on node/service. Rules are
// in package licensing.
//
// Packages below:
//
//	node/service  the use cases: orders, licenses, API keys, webhooks, lists, sweeps
//	node/store    the interfaces of the database, and their conformance tests
//	node/clocks   the comparison of the node's clock with the other nodes' clocks
//	node/peer     carries hops to other nodes over TLS
//
// Limits, by package:
//
//	node                 commands at a time, on the node and of an owner; what a license or an owner writes in a time
//	node/service         pages of lists, waits for events and redactions at a time; how much an account stores
//	handlers/limits      requests in a time, of a client address, an account, a license key
//	handlers             sizes of requests, and bytes of responses that have not left
//	handlers/connection  connections, their age, and bytes of bodies from unknown senders
//	node/peer            connections of other nodes, and of strangers at their listener
//	delivery             attempts at a time to webhook endpoints
//	kv/internal/etcd     when etcd is almost full or full (space.go)
//	licensing            limits that belong to a rule: devices of a license, lengths of fields, the budget itself
//	cmd/licet            the flags that set these limits
//
// The tests here run turns on a real etcd with swaps that the test delays, loses or fails, and nodes that hop to each
// other in one process. Package internal/history checks the same guarantees by random histories.
//
// The map of the package:
//
//	node.go         the configuration and the parts of a node; whether it may serve now
//	clock.go        the time of a node, and whether it may act by it
//	lifecycle.go    how a node leaves and drains
//	place.go        how use cases get a place on the node and run commands
//	admission.go    how many commands a node lets in, and which it refuses
//	shares.go       how many of these commands each owner, and each network of end users, may have
//	servicerate.go  how many commands a second the node can serve
//	mailbox.go      one queue for each record, and its turns
//	mailboxes.go    all mailboxes of a node, and their number
//	call.go         one command or task on its way through a mailbox
//	answer.go       one turn: what the store remembers, what must be read
//	fold.go         many commands on one snapshot
//	swap.go         fold, commit, and fold again after a lost swap
//	meter.go        token buckets for any number of licenses and owners, in fixed memory
//	writelimit.go   the limits on new devices and on written bytes of one license and one owner
//	reserve.go      what a node refuses while the store is almost full
//	changelimit.go  how many changes each owner may make while the store is almost full, or beyond its budget
//	budget.go       refuses growth beyond an owner's budget, which package node/service knows
//	claim.go        requests with an Idempotency-Key
//	recordlock.go   tasks under a record's lock, and swaps of several records
//	seen.go         when devices were seen, stored in the background
//	placement.go    which node writes a license that several nodes write
//	contention.go   what a node knows of one license that several nodes write
//	outbox.go       commands that wait to hop to another node
//	hop.go          commands on their way to another node, and from one
//	peers.go        the interface to the other nodes
//	trace.go        the spans of turns and hops
package node
