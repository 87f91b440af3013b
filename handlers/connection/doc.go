// Package connection adapts the connections of fasthttp. It refuses requests that fasthttp accepts
// although other servers may read them in another way, it limits the number and the age of
// connections, and it saves the cost of idle connections and of requests that the node refuses anyway.
//
// A refusal before routing has one of four reasons, which errors.go lists. Package handlers, which
// imports this package, maps them to status and code like the reasons of any other error.
//
// This package knows no route, no API key and no rate limit. It opens no listener: it wraps the listener of package
// cmd/licet, with TLS or without. Most of its tests are in package handlers, over TCP.
//
// Files:
//
//   - listener.go: accepts connections up to a limit, and closes unused ones at shutdown
//   - idle.go: closes the longest-idle connection to make a place for another
//   - conn.go: one connection; reads ahead, checks the framing, and lets clients read a refusal
//   - body.go: bounds the bytes of bodies whose sender is not known yet
//   - write.go: writes responses, and closes connections whose clients read too slowly
//   - framing.go: follows the bytes of requests to find ambiguous framing
//   - head.go: checks a request's head before the body is read
//   - refusal.go: answers plain requests without fasthttp while the node is overloaded
//   - gone.go: notices that the client has gone while its request waits
//   - lazydeadline.go: sets the deadlines of a connection only when they matter
//   - requestdeadlines.go: the context of a request, which ends with the request's time
//   - errors.go: the errors of refusals before routing
package connection
