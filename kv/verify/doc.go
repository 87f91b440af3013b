// Package verify proves that a store does not contradict itself: [Run] reads all keys at one revision, decodes each,
// and looks up what each key refers to. It changes nothing, and keeps a bounded part of the store in memory.
//
// All checks of licet store verify are here, with the names of the rules that a store may break. Package kv has only
// the cheap checks that a node makes of each license that it reads or writes; their rules are in
// kv/internal/layout/licenserules.go. Package kv/internal/layout defines keys and values. The flags of licet store
// verify and its output are in package cmd/licet (verify.go). The tests are in package kv.
//
// # Files
//
//	verify.go      Run: the families of keys, violations, the summary
//	reading.go     the reading that all checks share; violations
//	read.go        reading a family, and looking keys up
//	slots.go       the slots in use and their map, keys in the wrong slot, and keys of no family
//	names.go       how violations name what may be secret
//	licenses.go    licenses with their devices and metadata
//	customers.go   entries in the listings of customers' licenses
//	leases.go      the leases of a license
//	fields.go      whether the fields of one license or order contradict each other
//	aliases.go     external keys, their aliases, and the settings of owners
//	trials.go      trials and their licenses
//	orders.go      orders, their licenses and the pointers to their owners
//	payments.go    payments and their orders
//	sandbox.go     what the sandbox knows about orders
//	paymentlistings.go the listings of orders' payments, and their sums
//	records.go     products and single keys
//	listings.go    entries of listings
//	due.go         entries of due work
//	claims.go      claims on Idempotency-Keys
//	apikeys.go     API keys, their index and their marks
//	webhooks.go    endpoints, and owners that listen
//	receiptkeys.go the keys that sign receipts
//	revocations.go which receipts are void
//	deliveries.go  the stored state of deliveries to an endpoint
//	events.go      events and their keys
//	eventlinks.go  the chain of a record's events
//	ledgers.go     ledgers of events
//	usage.go       records of how much owners store
//	sizes.go       counting how much owners store
package verify
