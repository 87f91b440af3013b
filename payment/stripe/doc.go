// Package stripe implements [payment.Provider] with Stripe: the buyer pays in a Checkout Session, on a page of Stripe.
//
// A [Provider] belongs to one account and mode, and has the secret key of one account at Stripe. It keeps no state, so
// any node may continue what another node has begun. What makes a call idempotent is at Stripe: the idempotency key,
// which Stripe keeps for a day, and our numbers in the metadata of its objects.
//
// The requests go through the types and the backend of stripe-go, which pins the version of Stripe's API. The clients
// of stripe-go are not used: they would link all of the about 200 services into the program.
//
// Files:
//
//   - provider.go: the configuration, and the checks of keys
//   - client.go: requests to Stripe: time limits, bounded responses, no retries, no telemetry
//   - checkout.go: makes and ends Checkout Sessions
//   - look.go: reads the state of objects
//   - dispute.go: reads disputes
//   - refund.go: refunds
//   - subscription.go: makes, changes and ends subscriptions, and reads them
//   - invoice.go: reads invoices of subscriptions
//   - callback.go: verifies callbacks, and returns the object that a callback names
//   - events.go: lists the events of refunds and disputes
//   - connect.go: makes the webhook endpoint at Stripe
//   - amounts.go: Stripe's minor units, and which amounts Stripe charges
//   - errors.go: what an error of Stripe means
package stripe
