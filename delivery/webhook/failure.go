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

// Failure is a code for why an attempt failed.
type Failure string

// The failures.
const (
	FailureStatus            Failure = "status"             // the response is neither 2xx nor 3xx
	FailureRedirect          Failure = "redirect"           // 3xx; the sender does not follow redirects
	FailureTimeout           Failure = "timeout"            // no response in time
	FailureURL               Failure = "url_refused"        // the service's settings forbid the URL by now
	FailureAddress           Failure = "address_refused"    // the policy forbids the host's address
	FailureDNS               Failure = "dns"                // the host's name was not resolved
	FailureConnectionRefused Failure = "connection_refused" // no process listens on the port
	FailureUnreachable       Failure = "unreachable"        // there is no route to the host
	FailureTLS               Failure = "tls"                // no TLS, or an invalid certificate
	FailureConnectionLost    Failure = "connection_lost"    // the connection was closed before a response
	FailureProtocol          Failure = "protocol_error"     // the response is not HTTP, or its header is too long
)

// classify returns why there was no response.
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

// progress records how far an attempt got, which not every error says. The goroutines of the attempt's
// connection write it.
type progress struct {
	handshakeFailed atomic.Bool
	answered        atomic.Bool // the first byte of the response has come
}

// trackProgress returns a context in which requests record their progress in p.
func (p *progress) trackProgress(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeDone: func(_ tls.ConnectionState, err error) {
			if err != nil {
				p.handshakeFailed.Store(true)
			}
		},
		GotFirstResponseByte: func() { p.answered.Store(true) },
	})
}
