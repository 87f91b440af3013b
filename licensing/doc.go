// Package licensing contains the vocabulary of the service and its rules: what a license, an order, a
// product and an API key are, and which changes to them are legal.
//
// An [Owner] is an account in one [Mode], live or test. Every record belongs to one owner, and no owner sees or changes
// the records of another. All records of an owner are in one [Slot], and their ids contain the slot.
//
// In five steps: A shop creates an [Order]. The buyer pays the order, and the same transaction issues
// a [License] with a [LicenseKey]. An installed copy activates the key on its [Device], which takes
// one of the license's device slots. Removing the device frees the device slot. A license can be suspended, revoked
// or expired; its [Status] says so.
//
// Everything here is pure: no I/O, no clock, no randomness. A change is a [Command]. [Apply] takes a
// stored [Record], one command and the time, changes the record, and returns a [Result] or an [Error].
// The same input always gives the same output. So tables test the rules, and tests replay a recorded
// history of the running service through them.
//
// Package licensing does not decide which transaction carries a change, or which request runs when:
// package node folds commands into transactions, package kv stores them in etcd, package handlers
// speaks HTTP. What needs a secret is in package licensing/keyring. Package licensing encodes no value: package
// kv/internal/layout does, and package handlers encodes JSON. A command here is an instruction to change a record, not
// a command of the licet program.
//
// An [Event] records one change for the feed and for webhooks. The claim of an Idempotency-Key ([Claim]) is the record
// of a request with that key and its result, so that a repeated request is not executed twice.
//
// The tests are tables of commands, states and results, and random sequences of commands against a naive model.
//
// The map of the package:
//
//	license.go             licenses and devices, the status of a license, and what is wrong with a device id
//	license_commands.go    activate a device, note when it was seen, remove it
//	license_selfservice.go validate, deactivate: commands of end users
//	license_lifecycle.go   suspend, reinstate, revoke, renew and update a license
//	lease.go               leases of devices: give, renew and remove
//	trial.go               trials: a license once for a device or an address, and its upgrade
//	entitlements.go        entitlements, and the versions of terms
//	licensekey.go          license ids, what stands for a license key, aliases of licenses, external keys
//	reissue.go             new keys of a license: which keys still work; the command that makes another
//	devicechange.go        devices that take the slot of another: with another id, or after it was unseen
//	order.go               orders and their status; orders for several licenses, and what these must get
//	order_commands.go      pay, cancel and expire an order; attempts to pay at a payment provider
//	refund_commands.go     refunds
//	dispute.go             disputes of payments
//	order_payment.go       what was paid for an order, and what has gone back, also at the provider
//	order_subscription.go  the facts of the subscription of an order, and changes that the shop requests
//	subscription.go        subscriptions of orders, and their invoices
//	further_returns.go     refunds and disputes of invoices and second payments, and the periods that they take back
//	returns.go             second payments of orders, and open refunds of them and of invoices
//	payment.go             records of payments, their fees, and payments that a shop has received itself
//	sandbox.go             what the sandbox knows about an order and its subscription
//	sale.go                sums of payments and refunds by currency, and by day or month
//	product.go             products and terms; put and delete a product
//	rollout.go             rollouts of a product's terms to earlier licenses
//	webhooks.go            webhook endpoints; create, change and delete an endpoint
//	settings.go            the settings of an account in a mode
//	account.go             accounts, modes and API keys; slots: which part of all data an owner's records are in
//	receipt.go             receipts: their times, their revision, until when they may be valid
//	receiptkeys.go         the keys that sign receipts; which receipts a change voids
//	usage.go               what an account stores, its budget and warnings, and which commands make the store grow
//	apply.go               records, commands and their results
//	claim.go               claims of Idempotency-Keys
//	due.go                 work that is due on a record; notices before the end of a license, its grace, both ends
//	event.go               events of changes
//	eventlater.go          events that only a newer version knows; eventlater_next.go: such events, for a test
//	errors.go              the errors that callers see: reasons, codes, and what is wrong with each field
//	metadata.go            metadata of a license, customers, and the removal of a buyer's personal data
//	period.go              calendar periods; points in time as text, and ranges of time
package licensing
