// Package service holds the use cases: what shops, buyers and devices ask of a node. A use case
// takes a place in the engine's admission, reads records from the store or runs commands in the
// engine, and answers what came of that.
//
// The map of the package:
//
//	service.go         the service: its parts, settings and end
//	admitted.go        how a use case begins: a place, an Idempotency-Key, a try
//	orders.go          orders: made, read, paid
//	orderchanges.go    orders: canceled, refunded
//	products.go        products
//	licenses.go        licenses and their devices
//	grants.go          licenses without an order
//	listing.go         lists of orders, licenses, products and API keys
//	lists.go           how many pages are read at a time
//	redaction.go       what is noted of a buyer is removed
//	apikeys.go         API keys: made, changed, read
//	keymaker.go        how an API key and its secret are made
//	keycache.go        API keys that are remembered, and who they let in
//	keyuse.go          when API keys were used
//	webhooks.go        webhook endpoints
//	deliveries.go      deliveries to endpoints, and replays
//	deliveryevents.go  pages of events for deliveries
//	eventviews.go      pages of events and of histories
//	feed.go            who waits for events, and epochs that are sealed
//	feedwait.go        a wait that ends with its API key
//	chores.go          what a node does again and again
//	sweep.go           what is due, and what is old
package service
