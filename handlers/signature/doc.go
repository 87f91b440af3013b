// Package signature checks signed requests: HTTP Message Signatures (RFC 9421)
// with hmac-sha256, over a body by its Content-Digest (RFC 9530).
//
// It reads what a request is made of as it was received, and knows neither an
// HTTP server nor a clock. What it demands to be covered, and how old a
// signature may be, is this service's profile of the RFC: see [Verify].
package signature
