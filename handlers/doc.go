// Package handlers speaks HTTP for a node: it is where bytes of the network
// become commands, and where answers become bytes. Nothing of fasthttp leaves
// it: its buffers are used again after a request, so whatever goes on to the
// node is copied first.
//
// The story of one request:
//
//  1. Package connection wraps each connection, so that it can be closed in good
//     manners after a refusal. While the node is full, plain activations are
//     refused right there (refusal.go).
//  2. As soon as the head of the request is there, package connection judges it:
//     its size, its framing, the length that it declares. A head that is refused
//     gets no chance to have its body read as something else (bodylimit.go).
//  3. The raw path is matched against the one table of routes (routes.go), and
//     only then are its variable segments decoded, once (target.go).
//  4. One adapter (exchange.go) does for all routes what each could forget:
//     request id, credentials (auth.go), scope, rate limits (ratelimit.go),
//     media type, a deadline of its own, recovery from panics, the envelope and
//     the headers (envelope.go), metrics and one line in the log (accesslog.go).
//  5. The route's handler decodes the body (decode.go), names every bad member
//     (validate.go), asks the node and answers a value or an error.
//  6. Errors know nothing of HTTP; one table gives them status and code
//     (errors.go).
//
// Which error wins follows from that order. docs/reference/api.md is the contract as a
// caller sees it.
package handlers
