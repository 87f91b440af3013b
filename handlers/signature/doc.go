// Package signature verifies signed requests: HTTP Message Signatures (RFC 9421) with hmac-sha256, which
// cover the body by its Content-Digest (RFC 9530).
//
// The package works on the parts of a request as received. It knows no HTTP server and no clock. [Verify]
// documents this service's profile of the RFC: which components a signature must cover, and how old a
// signature may be. Package client signs requests; signatures of webhooks are in package delivery/webhook.
//
// Files:
//
//   - verify.go: verifies the signatures of a request
//   - base.go: builds the signature base, the bytes that a signature covers
//   - digest.go: compares the body with its Content-Digest
package signature
