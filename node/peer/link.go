package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"licet/node/store"
)

const (
	// reachTimeout bounds the connect to another node and the handshake. Meanwhile commands wait that this node
	// could run.
	reachTimeout = 500 * time.Millisecond
	// spareLinks is the number of idle connections that are kept to one other node.
	spareLinks = 16
	// unusedTimeout is when the client closes an idle connection. The other node waits longer, so that no request
	// uses a connection that is closing.
	unusedTimeout = idleTimeout / 2
)

// link has the connections to one other node.
type link struct {
	registration store.Registration
	url          string
	http         *http.Transport

	mu      sync.Mutex
	age     time.Duration // of the other node, when learned
	learned time.Time     // zero: never
}

// unreachedError reports that no connection was made, so nothing was sent.
type unreachedError struct{ cause error }

func (e *unreachedError) Error() string { return "reach another node: " + e.cause.Error() }
func (e *unreachedError) Unwrap() error { return e.cause }

// newLink returns a link. It does not connect yet.
//
// The client is net/http's, since net/http notices that an idle connection was closed, so that it
// sends nothing to a node that is gone. net/http repeats a POST only if it has written no byte of it.
func newLink(r store.Registration) *link {
	l := &link{registration: r, url: (&url.URL{Scheme: "https", Host: r.Address, Path: hopPath}).String()}
	security := clientConfig(r.PublicKey)
	security.ClientSessionCache = tls.NewLRUClientSessionCache(1)
	l.http = &http.Transport{
		DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dial(ctx, network, address, security)
			if err != nil {
				return nil, &unreachedError{err}
			}
			return conn, nil
		},
		DisableCompression:  true,
		MaxIdleConnsPerHost: spareLinks,
		IdleConnTimeout:     unusedTimeout,
	}
	return l
}

// dial connects and completes the TLS handshake, so that a failure here means that nothing was sent.
func dial(ctx context.Context, network, address string, security *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	var dialer net.Dialer
	tcp, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	conn := tls.Client(tcp, security)
	if err := conn.HandshakeContext(ctx); err != nil {
		_ = tcp.Close()
		return nil, fmt.Errorf("shake hands: %w", err)
	}
	return conn, nil
}

// learn records the age that the other node reported. The other node is at least that old, since the
// report took time to arrive. The fastest report is the best estimate, and learn keeps it for a while.
func (l *link) learn(age time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if since := now.Sub(l.learned); since > ageKept/2 || age >= l.age+since {
		l.age, l.learned = age, now
	}
}

// ageAt returns the least age of the other node at a moment of this node's clock. So commands that
// expire there at that age have expired here at that moment. It reports false if the age was not
// learned lately.
func (l *link) ageAt(moment time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.learned.IsZero() || time.Since(l.learned) > ageKept {
		return 0, false
	}
	return l.age + moment.Sub(l.learned), true
}
