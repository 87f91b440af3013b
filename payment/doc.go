// Package payment connects the pay page, the payment provider and the order. A [Provider] moves the money. The
// [Desk] marks an order as paid when the provider reports the payment. The Desk also refunds orders: at the
// shop's request, and when a payment arrives for a canceled order.
//
// The [Sandbox] is the provider of test mode. Package payment/stripe is the provider Stripe.
//
// The rules of orders and refunds are in package licensing, and the HTML of the pay page is in package
// handlers/paypage. Package node/service runs the commands that change the order (pay, request, try, withdraw and
// record a refund); this package decides when to run which. The routes and forms of the pay page are in package
// handlers (pay.go). The tests kill a node between any two steps of a payment or a refund, with a provider that
// outlives the node.
//
// The Desk consists of parts. Each part calls only parts above it in this list:
//
//   - returns and refunds: send back payments
//   - invoices, checkouts and subscriptions: take and record payments
//   - payments: finds the payment of a refund or a dispute
//   - refundCallbacks and disputes: record what happened at the provider
//   - callbacks: calls the part for the object that a callback names
//   - plays: calls callbacks for the sandbox, as a provider would
//
// Files:
//
//   - provider.go: the interface of providers
//   - payment.go: the desk that takes payments
//   - backend.go: the node and the providers that the desk connects
//   - checkout.go: checkouts at a provider: one at a time for each order
//   - subscription.go: subscriptions, from callbacks and from the sweep
//   - invoice.go: the paid invoices of subscriptions
//   - subscriptionchange.go: changes of subscriptions that the shop requests
//   - gone.go: objects of our records that the provider does not know
//   - callback.go: what follows a callback of a provider
//   - refund.go: refunds, from the request to the record, with retries: at once and later by a sweep
//   - furtherpayment.go: second payments of orders, which go back, and refunds of later invoices of subscriptions
//   - invoicerefund.go: callbacks about these refunds
//   - paymentof.go: the payment that a refund or a dispute at the provider is of
//   - refundcallback.go: callbacks about our refunds, and about refunds that were made at the provider
//   - dispute.go: disputes of payments
//   - sweep.go: the sweeps that ask about checkouts, subscriptions and disputes
//   - providerevents.go: the provider's list of events, for refunds and disputes whose callbacks are lost
//   - sandbox.go: the provider of test mode
//   - sandboxsubscription.go: subscriptions in the sandbox
//   - play.go: what buyers and banks do in the sandbox
//   - instrument.go: counts and times the requests to a provider
//   - places.go: the places that the requests of all owners share
//   - tax.go: refunds of payments with tax
//   - trace.go: the spans of requests to a provider
package payment
