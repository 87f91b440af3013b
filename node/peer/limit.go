package peer

import (
	"net"
	"sync"
	"sync/atomic"
)

// limited is a listener with a bounded number of open connections. It closes any further connection
// without an answer. fasthttp would write an answer before it accepts the next connection; with TLS
// that begins with a handshake, on which any client could let the listener wait forever.
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
