package connection

import (
	"cmp"
	"slices"
)

// maxCandidates bounds the idle connections that one look at all connections finds, so that a look is
// rare however many connections are evicted.
const maxCandidates = 64

// candidate is a connection that was idle at a look at all connections.
type candidate struct {
	conn  *Conn
	since int64 // the value of conn.idle
}

// beginIdle marks a connection as idle: the server waits for a request and has received nothing of it.
// beginIdle is a no-op for a connection that is idle already, as any is since it was accepted.
func (c *Conn) beginIdle() {
	if c.idle.Load() == 0 {
		c.idle.CompareAndSwap(0, c.listener.sinceStart())
	}
}

// endIdle marks a connection as busy: some bytes of a request have arrived. It reports false if the
// listener has evicted the connection.
func (c *Conn) endIdle() bool {
	since := c.idle.Load()
	return since != evictedIdle && (since == 0 || c.idle.CompareAndSwap(since, 0))
}

// evicted reports whether the listener has closed the connection to make a place for another.
func (c *Conn) evicted() bool { return c.idle.Load() == evictedIdle }

// evictedIdle is the value of Conn.idle after evict.
const evictedIdle = -1

// evict closes the longest-idle connection, and reports whether there was one. The place is free when
// evict returns.
func (l *Listener) evict() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leaving >= mostLeaving {
		return false
	}
	if l.evictCandidate() {
		return true
	}
	l.findCandidates()
	return l.evictCandidate()
}

// evictCandidate evicts the longest idle candidate among the candidates that are still idle since the
// same moment. The caller holds mu.
func (l *Listener) evictCandidate() bool {
	for len(l.candidates) > 0 {
		last := len(l.candidates) - 1
		next := l.candidates[last]
		l.candidates[last] = candidate{} // or the connection would stay in memory
		l.candidates = l.candidates[:last]
		c := next.conn
		if _, open := l.conns[c]; !open || !c.idle.CompareAndSwap(next.since, evictedIdle) {
			continue
		}
		l.leaving++
		l.places.Give(c.network, 1)
		l.cfg.Evicted.Inc()
		// Not Conn.Close, which the goroutine that serves the connection calls when its read fails. And
		// not the Close of TLS, which writes an alert and may wait for the client.
		_ = withoutTLS(c.Conn).Close()
		return true
	}
	return false
}

// findCandidates looks at all connections. The caller holds mu.
func (l *Listener) findCandidates() {
	var idle []candidate
	for c := range l.conns {
		if since := c.idle.Load(); since > 0 {
			idle = append(idle, candidate{c, since})
		}
	}
	slices.SortFunc(idle, func(a, b candidate) int { return cmp.Compare(b.since, a.since) })
	l.candidates = slices.Clone(idle[max(len(idle)-maxCandidates, 0):])
}
