package peer

import (
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener that has so many connections open at most, and closes
// those that come beyond without a word. fasthttp would write them an answer, and
// do so where it accepts; with TLS that begins with a handshake, for which a
// stranger could let it wait for ever.
type limited struct {
	net.Listener
	most int64
	open atomic.Int64
}

func (l *limited) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.Add(1) <= l.most {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
		}
		l.open.Add(-1)
		_ = conn.Close()
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

func (c *limitedConn) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
