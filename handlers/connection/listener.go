package connection

import (
	"context"
	"crypto/tls"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"licet/internal/fair"
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
	// sendBuffer is the kernel's send buffer of a connection, in bytes; the kernel adds as much for its
	// own use. By default a buffer may grow to some megabytes, which are part of a container's memory,
	// and a client that reads nothing fills it.
	sendBuffer = 64 << 10
	// mostLeaving bounds the evicted connections whose goroutines have not noticed yet. They count
	// toward Spare, not toward Config.MaxConnections.
	mostLeaving = Spare / 2
)

// Spare is how many connections beyond Config.MaxConnections may be open for a moment.
const Spare = 1024

// Config configures a [Listener]. Every field is required.
type Config struct {
	MaxConnections int // open at once
	// Overloaded is the complete HTTP response to a connection that the listener refuses.
	Overloaded []byte
	// Network returns the address that the connections of a client count as. The connections of the
	// zero address have no share of MaxConnections: only the whole bounds them.
	Network func(client netip.Addr) netip.Addr
	// Refused counts a connection that the listener refuses. full: MaxConnections are open. Otherwise
	// the network has as many connections as are still free.
	Refused func(network netip.Addr, full bool)
	Evicted prometheus.Counter // counts idle connections that were closed to accept another
	// MaxBodies bounds the bytes of the request bodies that the server waits for or works on. Bodies
	// that arrive with the first KiB of their request do not count.
	MaxBodies int64
	// BodyRefused counts the requests that the listener refuses because of MaxBodies.
	BodyRefused prometheus.Counter
	// MaxBody is the greatest length of a body that the server reads, MaxChunked that of a body in chunks.
	MaxBody, MaxChunked int
	Guard               *guard.Guard
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

// Listener accepts at most a number of connections at once, as [Conn]. A network may have as many
// connections as are still free. Make a Listener with [NewListener].
type Listener struct {
	net.Listener
	cfg      Config
	began    time.Time
	draining atomic.Bool              // unused connections must be closed
	places   *fair.Shares[netip.Addr] // of MaxConnections
	bodies   *fair.Shares[netip.Addr] // of MaxBodies

	mu      sync.Mutex
	conns   map[*Conn]struct{} // the open connections; guarded by mu
	leaving int                // of conns, evicted; guarded by mu
	// candidates are connections that were idle for longest at the last look at all connections,
	// the longest-idle last. Guarded by mu.
	candidates []candidate
}

// NewListener returns a listener that wraps the connections of inner.
func NewListener(inner net.Listener, cfg Config) *Listener {
	return &Listener{
		Listener: inner, cfg: cfg, began: time.Now(), conns: make(map[*Conn]struct{}),
		places: fair.NewShares[netip.Addr](int64(cfg.MaxConnections)),
		bodies: fair.NewShares[netip.Addr](cfg.MaxBodies),
	}
}

// BodyBytes returns the bytes that count toward Config.MaxBodies.
func (l *Listener) BodyBytes() int64 { return l.bodies.Taken() }

// Accept waits for the next connection that has a place. If MaxConnections are open, Accept closes the
// longest-idle connection to make a place for a network without connections. To any other connection
// Accept sends Overloaded, and closes the connection.
func (l *Listener) Accept() (net.Conn, error) {
	for {
		inner, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		network := l.network(inner)
		if l.places.Take(network, 1) {
			return l.wrap(inner, network), nil
		}
		full := l.places.Free() <= 0
		if full && l.places.Held(network) == 0 && l.evict() && l.places.Take(network, 1) {
			return l.wrap(inner, network), nil
		}
		l.cfg.Refused(network, full)
		// Accept does not read the request, and does not wait for a TLS handshake: either would
		// delay all other connections.
		if _, secure := inner.(*tls.Conn); !secure {
			_ = inner.SetWriteDeadline(time.Now().Add(overloadedTimeout))
			_, _ = inner.Write(l.cfg.Overloaded)
		}
		_ = inner.Close()
	}
}

// network returns the network of a connection, and the zero address for a connection that did not come
// over TCP.
func (l *Listener) network(inner net.Conn) netip.Addr {
	peer, ok := inner.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return l.cfg.Network(peer.AddrPort().Addr())
}

func (l *Listener) wrap(inner net.Conn, network netip.Addr) *Conn {
	if tcp, ok := withoutTLS(inner).(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer) // a larger buffer serves too
	}
	age := l.cfg.MaxAge - rand.N(l.cfg.MaxAge/ageJitter+1)
	c := &Conn{Conn: inner, listener: l, network: network, silent: true, expires: time.Now().Add(age)}
	c.unused.Store(true)
	c.idle.Store(l.sinceStart())
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[c] = struct{}{}
	return c
}

// withoutTLS returns the connection below TLS, or the connection itself.
func withoutTLS(c net.Conn) net.Conn {
	if secure, ok := c.(*tls.Conn); ok {
		return secure.NetConn()
	}
	return c
}

// sinceStart returns the time since the listener was made, in nanoseconds, and at least 1.
func (l *Listener) sinceStart() int64 { return int64(time.Since(l.began)) + 1 }

// remove ends the place of a closed connection.
func (l *Listener) remove(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
	if c.evicted() {
		l.leaving--
	} else {
		l.places.Give(c.network, 1)
	}
}

// Drain stops accepting connections, waits a quarter of a second, until no connection is open, or
// until ctx ends, and then closes the unused connections. The caller must make every response
// close its connection before it calls Drain.
func (l *Listener) Drain(ctx context.Context) {
	_ = l.Close() // fasthttp closes the listener again, and reports the error
	until := time.Now().Add(drainTime)
	for l.open() > 0 && time.Now().Before(until) && ctx.Err() == nil {
		time.Sleep(drainPollInterval)
	}
	l.interruptUnused()
}

// open returns the number of open connections.
func (l *Listener) open() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns)
}

// interruptUnused ends the connections of which fasthttp has received nothing. fasthttp's shutdown takes
// them for new, and waits some seconds for their first request; but clients open connections in advance
// and may never use them.
func (l *Listener) interruptUnused() {
	l.draining.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		if c.unused.Load() {
			_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
		}
	}
}
