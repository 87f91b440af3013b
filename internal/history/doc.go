// Package history checks the guarantees of the service under faults. It contains only tests. Clients work on a few
// licenses and orders through several nodes while requests to etcd fail, nodes are killed and paused, and clocks are
// wrong. The tests record each request and its answer: a history. A history is correct if the rules of a license
// explain all answers in some order of the operations (linearizability, checked with porcupine), and explain every
// revision that etcd has had.
//
// docs/explanation/correctness.md says what the tests check and how to run them longer. Package loadtest/run proves the
// same for a load from outside, without a model.
//
//	history_test.go           the tests: one history each, with many seeds
//	run_test.go               one history: start, clients and faults, check
//	cluster_test.go           the nodes of a history on one etcd
//	etcd_test.go              this etcd
//	clients_test.go           the clients: which operations they send, and what they record
//	shop_test.go              the client that orders, pays and refunds
//	quantity_test.go          orders for many licenses, and their seeded bugs
//	sandbox_test.go           orders about which the sandbox plays
//	outside_test.go           payments that the shop has received itself, and their seeded bugs
//	external_test.go          clients that bring the same external keys, and the aliases of these
//	entitlements_test.go      other terms of the product, and the entitlements of licenses
//	customers_test.go         the customers of licenses, and their listings
//	reissue_test.go           new keys of a license, and which keys clients present
//	leases_test.go            licenses with leases: the model, what must hold between two revisions, and seeded bugs
//	rollouts_test.go          rollouts of a product's terms, and the licenses that they change
//	devices_test.go           licenses whose devices change, and that lose inactive devices: as leases_test.go
//	doubt_test.go             a node whose clock no other clock has confirmed
//	grace_test.go             the grace of licenses, and notices before their ends: as leases_test.go
//	bank_test.go              a payment provider that outlives the nodes
//	checkouts_test.go         orders that buyers pay in checkouts, the provider with checkouts, and seeded bugs
//	seconds_test.go           second payments of orders, and their seeded bugs
//	fees_test.go              fees that the provider tells after the payments, and their seeded bugs
//	subscriptions_test.go     orders that start subscriptions, their invoices, and their seeded bugs
//	amendments_test.go        subscriptions that the shop ends, resumes and changes
//	amended_test.go           what must hold between two revisions of these, and their seeded bugs
//	disputes_test.go          disputes of payments, and their seeded bugs
//	returns_test.go           invoices that go back, by refunds and by disputes, and their seeded bugs
//	refunds_test.go           refunds of parts of payments, and their seeded bugs
//	keyed_test.go             requests with an Idempotency-Key
//	faults_test.go            failing requests, killed and paused nodes, wrong clocks
//	latewrites_test.go        writes that etcd applies late
//	hops_test.go              commands that hop between nodes
//	model_test.go             the model: the states that explain the answers so far
//	model_cases_test.go       histories that the model must accept or reject
//	unknown_test.go           which operations of unknown outcome can have had an effect
//	ends_test.go              the ends of licenses by time, and their events
//	revisions_test.go         every revision that etcd has had, read back
//	invariants_test.go        what must hold between two revisions of a license
//	invariants_orders_test.go the same for orders
//	invariants_events_test.go the same for events
//	events_test.go            the feed of events against the revisions
//	usage_test.go             how much the account stores, and the warnings about its budget
//	bugs_test.go              seeded bugs in the store or the engine, which the checks must find
//	bugs_events_test.go       seeded bugs in events
package history
