// Package handlers speaks HTTP for a node. It turns requests into calls of the use cases in
// node/service, and their results into responses. Nothing of fasthttp leaves the package: fasthttp
// reuses its buffers after a request, so handlers copies everything that goes on to the node.
//
// A request passes these steps, in this order. The order is part of the contract: it decides which
// error a request with several faults gets. docs/reference/api.md describes the contract.
//
//  1. Package connection wraps each connection, so that a refusal can close it properly. While the
//     node is full, a connection refuses plain activations before fasthttp reads them; refusal.go here
//     says which, and with which response.
//  2. Package connection checks the head as soon as it is complete: its size, its framing, and the
//     declared length of the body. server.go here has the limits.
//  3. The raw path selects a row of the table of routes (routes.go, routetable.go). Only then are the variables of
//     the path decoded, once (routetable.go).
//  4. request.go does what all routes share: request id, credentials and signature
//     (auth.go), scopes, rate limits (ratelimit.go), media type (requesttype.go), deadline, recovery
//     from panics, envelope and headers (envelope.go), metrics, and one log line (accesslog.go).
//  5. The adapter (endpoint.go) decodes the request into the request type of the route (decode.go),
//     checks it (requesttype.go, validate.go), and calls the function of the route.
//  6. errors.go gives each error its status and code. The use cases do not depend on HTTP.
//
// A route is one row of the table. It names a request type, a pattern, a scope and a function:
//
//	keyed[newOrder]("POST", "/v1/orders", "orders", orderRoutes.createOrder, creates)
//
// A request type is a struct. Its fields are the inputs of the route, with the tags json, path,
// query or form; its check method has the rules. The function sees nothing else of the request
// but who calls (request.go). [Routes] describes all routes from these types.
//
// The structs with json tags here are what the service reads and writes. Programs that call the service use the
// exported structs of package client, which repeat them.
//
// Packages below:
//
//	connection  fasthttp's connections: their number, deadlines and framing; early refusals
//	docs        the pages for people who use the API; docs.go here serves them
//	limits      token buckets of rate limits; which requests count is decided in ratelimit.go here
//	paypage     the HTML of the pay page; pay.go here serves it
//	signature   verifies signed requests; auth.go here finds the API key
//
// Package handlers decides no rule of licenses and orders (package licensing does), reads no store (package
// node/service does), and asks no payment provider (package payment does). It opens no listener and no TLS (package
// cmd/licet does). Its limits are about HTTP: sizes of requests, bytes of responses, rates. The doc of package node
// lists the limits of the other packages.
//
// The tests send requests over TCP to a service on a store in memory (mem*_test.go): golden files of requests and
// responses, malformed and ambiguous bytes, signatures, rate limits, and which error comes first.
//
// The files:
//
//	accesslog.go     the log line of a request; counters by route and by outcome of activations
//	account.go       the settings of an account, and how much it stores
//	receiptkeys.go   the keys that sign receipts, their open set, and the open list of receipts that are void
//	receipts.go      receipts of activations, validations and trials; the receipt file of a device without a network
//	receiptbatch.go  many devices without a network: their receipt files; and the release of such a device
//	admin.go         the listener for operators, probes, Go's profiles
//	apikeys.go       API keys
//	auth.go          API keys and signatures of callers, access for scripts of any web page
//	decode.go        JSON bodies, and what is wrong with them; the fast decoder for activations
//	deliveries.go    deliveries to webhook endpoints, replays, test messages
//	devices.go       devices of a license, their components and terms; cursors of their listings
//	docs.go          the API document, the API reference, the page at /
//	endpoint.go      the adapter between requests and the functions of routes
//	envelope.go      JSON of responses, and the encoder for activations, which appends to a buffer
//	errors.go        the table of errors
//	events.go        the feed, the history of licenses and orders; events as responses and webhooks show them
//	inputs.go        the field types of request types, and the header Idempotency-Key
//	licenses.go      licenses as responses show them, lookups, grants; metadata and entitlements
//	lifecycle.go     changes of licenses: suspend, reinstate, revoke, renew, reissue, update
//	listing.go       the routes of lists, and the cursors of their pages
//	orders.go        orders and redactions
//	subscriptions.go terms of subscriptions; cancel, resume and change subscriptions
//	payments.go      payments of an order, reports of sales, sandbox payments, callbacks of providers
//	pay.go           the routes of the pay page: buttons, redirects, headers; texts about refused requests
//	products.go      products, and rollouts of their terms
//	ratelimit.go     rate limits and their headers
//	refusal.go       the listener; refused connections; refusals before fasthttp
//	request.go       a request in progress, and the steps that all routes share
//	requesttype.go   request types, compiled; limits of their inputs; media types of their bodies
//	responses.go     the limit on the bytes of responses that have not left yet
//	routes.go        the list of routes: one row each
//	routetable.go    request targets, their routes, limits of bodies; the routes as generators and tests see them
//	selfservice.go   activate, validate and deactivate
//	trials.go        trials
//	server.go        configuration, start and shutdown, limits of bodies, texts of license keys
//	suggest.go       did you mean: unknown parameters, members and paths
//	trace.go         request ids and spans
//	validate.go      the rules for values
//	webhooks.go      webhook endpoints and their changes
package handlers
