package connection

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/metrics/guard"
)

const (
	// overloadedTimeout bounds the write of Config.Overloaded: until that write ends, Accept
	// accepts no other connection.
	overloadedTimeout = 100 * time.Millisecond
	// ageJitter is the divisor of MaxAge that yields the greatest difference between the ages
	// at which connections expire.
	ageJitter = 5
	// drainTime is how long Drain waits for responses to close their connections.
	drainTime         = 250 * time.Millisecond
	drainPollInterval = 5 * time.Millisecond
)

// Config configures a [Listener]. Every field is required.
type Config struct {
	MaxConnections int // open at once
	// Overloaded is the complete HTTP response to a connection beyond MaxConnections.
	Overloaded []byte
	Rejected   prometheus.Counter // counts connections beyond MaxConnections
	Guard      *guard.Guard
	// Refuse returns the response to a complete request that needs no more than a refusal, and
	// nil for any other bytes. Refuse may write the response over request, whose capacity is at
	// least 1 KiB.
	Refuse func(request []byte) (response []byte)
	// IdleTimeout and WriteTimeout are those of fasthttp. They apply to requests that Refuse
	// answers, which fasthttp never sees.
	IdleTimeout, WriteTimeout time.Duration
	// MaxAge is the age at which a connection expires. Each connection expires up to a fifth
	// earlier, at random, so that connections opened together do not all close together.
	MaxAge time.Duration
}

// Listener accepts at most a number of connections at once, as [Conn]. Make it with [NewListener].
type Listener struct {
	net.Listener
	cfg      Config
	open     atomic.Int64 // connections
	draining atomic.Bool  // the connections in unused must be closed

	mu sync.Mutex
	// unused holds the connections of which fasthttp has received nothing: the client has sent
	// nothing, or only requests that Config.Refuse has answered. Guarded by mu.
	unused map[*Conn]struct{}
}

// NewListener returns a listener that wraps the connections of inner.
func NewListener(inner net.Listener, cfg Config) *Listener {
	return &Listener{Listener: inner, cfg: cfg, unused: make(map[*Conn]struct{})}
}

// Accept waits for the next connection within MaxConnections. To any connection beyond
// MaxConnections, Accept sends Overloaded, and closes the connection.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= int64(l.cfg.MaxConnections) {
			return l.wrap(inner), nil
		}
		l.open.Add(-1)
		l.cfg.Rejected.Inc()
		// Accept does not read the request, and does not wait for a TLS handshake: either would
		// delay all other connections.
		if _, secure := inner.(*tls.Conn); !secure {
			_ = inner.SetWriteDeadline(time.Now().Add(overloadedTimeout))
			_, _ = inner.Write(l.cfg.Overloaded)
		}
		_ = inner.Close()
	}
}

func (l *Listener) wrap(inner net.Conn) *Conn {
	age := l.cfg.MaxAge - rand.N(l.cfg.MaxAge/ageJitter+1)
	c := &Conn{Conn: inner, listener: l, silent: true, expires: time.Now().Add(age)}
	c.unused.Store(true)
	l.trackUnused(c)
	return c
}

// trackUnused adds a connection to unused.
func (l *Listener) trackUnused(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unused[c] = struct{}{}
}

// untrack removes a connection from unused. untrack is a no-op for any other connection.
func (l *Listener) untrack(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unused, c)
}

// Drain stops accepting connections, waits a quarter of a second, until no connection is open, or
// until ctx ends, and then closes the unused connections. The caller must make every response
// close its connection before it calls Drain.
func (l *Listener) Drain(ctx context.Context) {
	_ = l.Close() // fasthttp closes the listener again, and reports the error
	until := time.Now().Add(drainTime)
	for l.open.Load() > 0 && time.Now().Before(until) && ctx.Err() == nil {
		time.Sleep(drainPollInterval)
	}
	l.interruptUnused()
}

// interruptUnused ends the connections in unused. fasthttp's shutdown takes them for new, and waits
// some seconds for their first request; but clients open connections in advance and may never use
// them.
func (l *Listener) interruptUnused() {
	l.draining.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.unused {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}
