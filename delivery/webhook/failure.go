package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"syscall"
)

// Failure says in a word why an attempt has failed.
type Failure string

// The failures.
const (
	FailureStatus            Failure = "status"             // an answer that is neither 2xx nor 3xx
	FailureRedirect          Failure = "redirect"           // 3xx; redirects are not followed
	FailureTimeout           Failure = "timeout"            // no answer in time
	FailureURL               Failure = "url_refused"        // the service's settings have come to forbid the URL
	FailureAddress           Failure = "address_refused"    // the host's address may not be reached
	FailureDNS               Failure = "dns"                // the host's address was not found
	FailureConnectionRefused Failure = "connection_refused" // nobody listens there
	FailureUnreachable       Failure = "unreachable"        // there is no way to the host
	FailureTLS               Failure = "tls"                // no TLS, or a certificate that is not good
	FailureConnectionLost    Failure = "connection_lost"    // closed before there was an answer
	FailureProtocol          Failure = "protocol_error"     // the answer is no HTTP, or has too long a header
)

// classify finds why there was no answer.
func classify(err error, outOfTime bool, seen *progress) Failure {
	var dns *net.DNSError
	var network *net.OpError
	var timeout net.Error
	switch {
	case errors.Is(err, errRefusedAddress):
		return FailureAddress
	case outOfTime:
		return FailureTimeout
	case errors.As(err, &dns):
		return FailureDNS
	case errors.As(err, &timeout) && timeout.Timeout():
		return FailureTimeout
	case errors.Is(err, syscall.ECONNREFUSED):
		return FailureConnectionRefused
	case seen.handshakeFailed.Load(), errors.Is(err, http.ErrSchemeMismatch):
		return FailureTLS
	case errors.As(err, &network) && network.Op == "dial":
		return FailureUnreachable
	case network != nil, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), !seen.answered.Load():
		return FailureConnectionLost
	}
	return FailureProtocol
}

// progress is how far an attempt has come, which not every error tells. It is
// written by the goroutines of its connection.
type progress struct {
	handshakeFailed atomic.Bool
	answered        atomic.Bool // a first byte has come
}

func (p *progress) watch(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.handshakeFailed.Store(true)
			}
		},
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}
