package peer

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/netip"
	"sync"

	"licet/internal/fair"
)

// callers is a listener that tells nodes from strangers. A caller is a stranger until it has sent a valid signature. An
// address may have as many strangers as are still free; above that, a new stranger takes the place of the oldest one
// of its address, and if none is free, of the oldest of all. So strangers never keep a node out, and nodes that have
// sent a valid signature keep their connections.
//
// The listener closes a connection without an answer. fasthttp would write an answer before it accepts the next
// connection; with TLS that begins with a handshake, on which any client could let the listener wait forever.
type callers struct {
	net.Listener
	most   int // strangers, nodes, and strangers that are leaving; of each
	places *fair.Shares[netip.Addr]

	mu        sync.Mutex
	strangers *list.List // of *caller, the oldest first; guarded by mu
	nodes     int        // connections of callers that have sent a valid signature; guarded by mu
	leaving   int        // evicted strangers whose goroutine has not noticed yet; guarded by mu
	left      sync.Cond  // signaled when an evicted stranger has left
}

func newCallers(listener net.Listener, most int) *callers {
	l := &callers{
		Listener: listener, most: most, places: fair.NewShares[netip.Addr](int64(most)), strangers: list.New(),
	}
	l.left.L = &l.mu
	return l
}

// caller is a connection that callers has accepted.
type caller struct {
	net.Conn
	all     *callers
	address netip.Addr
	place   *list.Element // among the strangers; nil: a node, evicted or closed. Guarded by all.mu
	node    bool          // guarded by all.mu
	evicted bool          // guarded by all.mu
}

// Accept implements net.Listener.
func (l *callers) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if c := l.accept(conn); c != nil {
			return c, nil
		}
		_ = conn.Close()
	}
}

// accept gives a connection a place among the strangers. It returns nil if there is none.
func (l *callers) accept(conn net.Conn) *caller {
	c := &caller{Conn: conn, all: l}
	if tcp, ok := conn.RemoteAddr().(*net.TCPAddr); ok {
		c.address = tcp.AddrPort().Addr().Unmap()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.places.Take(c.address, 1) {
		l.evict(c.address)
		if !l.places.Take(c.address, 1) {
			return nil
		}
	}
	c.place = l.strangers.PushBack(c)
	return c
}

// evict closes the oldest stranger of an address, or the oldest of all if the address has none. It waits while too many
// are leaving, which does not depend on their clients. The caller holds mu.
func (l *callers) evict(address netip.Addr) {
	for l.leaving >= l.most {
		l.left.Wait()
	}
	oldest := l.strangers.Front()
	for at := oldest; at != nil; at = at.Next() {
		if at.Value.(*caller).address == address {
			oldest = at
			break
		}
	}
	if oldest != nil {
		c := oldest.Value.(*caller)
		l.forget(c)
		c.evicted = true
		l.leaving++
		_ = c.Conn.Close()
	}
}

// forget ends the place of a stranger. The caller holds mu.
func (l *callers) forget(c *caller) {
	l.strangers.Remove(c.place)
	l.places.Give(c.address, 1)
	c.place = nil
}

// isNode notes that the caller of a TLS connection has sent a valid signature. It reports false if the connection was
// closed before, or if there are too many nodes.
func isNode(conn net.Conn) bool {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return false
	}
	c, ok := secure.NetConn().(*caller)
	if !ok {
		return false
	}
	l := c.all
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.node {
		return true
	}
	if c.place == nil || l.nodes >= l.most {
		return false
	}
	l.forget(c)
	l.nodes++
	c.node = true
	return true
}

// Close implements net.Conn.
func (c *caller) Close() error {
	c.all.mu.Lock()
	switch {
	case c.node:
		c.node = false
		c.all.nodes--
	case c.evicted:
		c.evicted = false
		c.all.leaving--
		c.all.left.Signal()
	case c.place != nil:
		c.all.forget(c)
	}
	c.all.mu.Unlock()
	return c.Conn.Close()
}
