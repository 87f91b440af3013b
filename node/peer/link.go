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
	// reachTimeout bounds the connecting to another node and the handshake. Till
	// then commands wait that could be run here.
	reachTimeout = 500 * time.Millisecond
	// spareLinks is how many connections to one other node are kept while they are
	// not in use.
	spareLinks = 16
	// unusedTimeout is when a connection is closed that is not used. The other
	// node waits longer, so that no request meets a connection that is closing.
	unusedTimeout = idleTimeout / 2
)

// link is how one other node is reached.
type link struct {
	registration store.Registration
	url          string
	http         *http.Transport

	mu      sync.Mutex
	age     time.Duration // of the other node, when it was learned
	learned time.Time     // zero: never
}

// unreachedError tells that a connection was not made, so nothing was sent on it.
type unreachedError struct{ cause error }

func (e *unreachedError) Error() string { return "reach another node: " + e.cause.Error() }
func (e *unreachedError) Unwrap() error { return e.cause }

// newLink makes a link; nothing is connected yet.
//
// The client is net/http's, since it notices that an idle connection has been
// closed, so that nothing is sent into one whose node is gone. A POST it repeats
// only where it has not written a byte of it.
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

// dial connects and shakes hands, so that all that fails here fails before
// anything is sent.
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

// learn notes how old the other node says it is. It has said so a while ago, so
// it is that old at least. What came quickest says most, and is kept for a while.
func (l *link) learn(age time.Duration) {
	now := time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if since := now.Sub(l.learned); since > ageKept/2 || age >= l.age+since {
		l.age, l.learned = age, now
	}
}

// ageAt is how old the other node is at least at a moment of our clock. So what
// is over at that age over there, is over at that moment here. It is known for a
// while after the other node has told.
func (l *link) ageAt(moment time.Time) (time.Duration, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.learned.IsZero() || time.Since(l.learned) > ageKept {
		return 0, false
	}
	return l.age + moment.Sub(l.learned), true
}
