// Package fakestripe is a stand-in for Stripe, for tests. It answers over HTTP as Stripe does, keeps its state, charges
// cards by Stripe's test numbers, sends signed callbacks, and keeps a ledger in which a test can count every cent.
//
// What a buyer, a bank or the shop does in Stripe's dashboard is a method of [Fake], or a form posted to the URL of a
// checkout. Faults are seeded: errors 429, 500 and 502, lost answers, and callbacks that are late, doubled, out of
// order or missing.
//
// The fake shares no code with package payment/stripe. From the SDK it takes the version of the API and the signatures.
//
// Files:
//
//   - fake.go: the fake, its parts and its accounts
//   - state.go: the lock, the clock and the objects that the parts share
//   - http.go: routes, authentication, errors, faults
//   - idempotency.go: idempotency keys, as Stripe keeps them
//   - objects.go: objects, references between them, lists
//   - checkout.go: Checkout Sessions
//   - buyer.go: what buyers do
//   - charges.go: payments that are taken or declined
//   - bank.go: payments that take days at the bank
//   - refunds.go: refunds
//   - disputes.go: disputes
//   - subscriptions.go: subscriptions, their invoices and renewals
//   - callbacks.go: events, and their delivery
//   - ledger.go: the ledger
package fakestripe
