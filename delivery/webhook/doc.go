// Package webhook sends one message to one endpoint. Package delivery decides which message is sent and when, and
// records the result.
//
// A [Sender] makes one attempt: a POST request, signed with each live [Secret] as Standard Webhooks 1.0 says. The
// owner of the endpoint chose the URL, so the sender does not trust the receiver. A [Policy] checks the URL when
// the endpoint is made, and checks the address again when the sender dials it. The sender follows no redirect,
// and a response costs little time and little memory. An [Attempt] is the result.
//
// [Delay] returns the pause before the next attempt, from the number of failed attempts: about ten attempts in
// three days.
//
// The clock, the randomness and the network's settings come from the caller. Receivers of webhooks verify them with
// package client/webhook. The tests send to hostile receivers: slow, endless, redirecting, with bad certificates.
//
// Files:
//   - sender.go: Sender, its connections and its requests
//   - attempt.go: the result of an attempt, and reading a response
//   - failure.go: why an attempt failed
//   - schedule.go: the pause between attempts
//   - secret.go: secrets and signatures
//   - policy.go: which addresses a sender may dial
//   - url.go: which URLs an endpoint may have
//   - trace.go: the span of one attempt
package webhook
