// Package webhook delivers one message to one endpoint. What is delivered, when,
// and what is recorded of it, is decided by others; here is how.
//
// A [Sender] makes one attempt: a POST signed as Standard Webhooks 1.0 says, with
// each [Secret] that is live, to an address that somebody outside has chosen. So
// the receiver is not trusted. Where it lies is judged by a [Policy] when the
// endpoint is made and again on the address that is dialed, it is not followed
// elsewhere, and what it answers costs neither much time nor much memory. An
// [Attempt] says what came of it.
//
// [Delay] says when to try again, from the number of the attempt alone: about ten
// times in three days.
//
// The clock, randomness and the network's settings come from outside.
package webhook
