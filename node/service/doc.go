// Package service contains the use cases: the operations that shops, buyers and devices ask a node for. A
// use case takes an admission place in the engine, reads records from the store or runs commands in
// the engine, and returns the result.
//
// Package service does not depend on HTTP, etcd or payment providers: packages handlers, kv and payment
// do. It decides no rule about licenses, orders or products: package licensing does. It changes a
// record only by way of the engine (package node), except for API keys, replays and sweeps, which the
// store changes itself.
//
// A [Service] has one part for each kind of record: [Orders], [Payments], [Subscriptions], [Licenses], [Products],
// [Keys], [Webhooks] and [Events]. [Rollouts], [Redactions], [Budgets], [Sweeps] and [LeaseCounts] are parts of their
// own. An [EventView] is an event with the fields that its order or license has now.
//
// A place is the right to run one of a limited number of things at a time on this node: a command (package node), a
// page of a list, or a wait for events. A claim is the record of an Idempotency-Key. A mark is a key of the store whose
// value changes with every change of an API key of some owners: the cache of API keys follows the marks.
//
// Not here: sending webhooks (package delivery), refunds through a provider (package payment), rate limits (package
// handlers/limits), limits on commands and on writes (package node), queries of etcd (package kv). The structs here
// have no json tags: package handlers turns them into responses.
//
// A sweep is periodic work on the records of many owners. [Sweeps] finds what is due, in the slots that this node
// sweeps. Package kv removes keys, package payment asks providers about refunds, checkouts and subscriptions, and this
// package does the other work.
//
// The tests run services on a real etcd, often two or three in one process, without HTTP.
//
// The map of the package:
//
//	service.go         the service: its parts, settings and shutdown; new ULIDs
//	gates.go           admission places, and limits of expensive work, such as pages of lists
//	idempotent.go      Idempotency-Keys, and retries after conflicts of claims
//	orders.go          create, read and pay orders
//	issuing.go         orders for many licenses: issue all, revoke all
//	orderchanges.go    cancel and refund orders
//	checkouts.go       checkouts of orders at payment providers, and which of them a sweep asks about
//	eventreading.go    takes the right to read the events at a payment provider; package payment reads
//	subscriptions.go   subscriptions, their invoices, and changes of what they pay for
//	furtherpayments.go second payments of orders, and refunds of them and of later invoices
//	payments.go        lists of the payments of an order; payments that a shop has received itself
//	disputes.go        disputes of payments
//	sandbox.go         what the sandbox knows about orders of test mode
//	products.go        products
//	rollouts.go        rollouts of the terms of products to earlier licenses
//	licenses.go        licenses and their devices: activate, validate, deactivate, read, change, reissue
//	trials.go          trials
//	entitlements.go    the entitlements that a license has, and their cache
//	notices.go         events before a license ends
//	aliases.go         licenses by external keys and reissued keys; the settings of owners
//	grants.go          licenses without an order
//	listing.go         lists of orders, licenses, products and API keys
//	reports.go         sums of payments and refunds
//	redaction.go       removal of a buyer's personal data
//	apikeys.go         create, change and read API keys
//	keymaker.go        creation and rotation of API keys and their secrets
//	keycache.go        the cache of API keys, and authentication
//	keyuse.go          when API keys were last used
//	webhooks.go        webhook endpoints
//	receipts.go        the keys that sign receipts; documents that are signed once for all that ask
//	revocations.go     lists of receipts that are void, and the sweep of what has left them
//	deliveries.go      reads deliveries to endpoints, and starts replays
//	eventviews.go      pages of the feed and of histories
//	feed.go            Events, how many callers may wait for events, the wait, and events for package delivery
//	budgets.go         how much accounts store, and whether their budgets refuse growth
//	recount.go         recounts of how much accounts store
//	leasecounts.go     how many leases are in use, for the metrics
//	chores.go          the periodic work of a node, and which slots the node sweeps
//	sweep.go           removes old claims, events and deleted endpoints; records ends; finds refunds that are due
package service
