package connection

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/metrics/guard"
)

const (
	// lingerTime and lingerBytes bound how long a connection that was refused
	// is read on before it is closed.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
	readAhead   = 1 << 10
	// turnAwayTime bounds the answer to a connection too many, since the next
	// one waits for it.
	turnAwayTime = 100 * time.Millisecond
	// ageSpread is by what share of the greatest age, one in so many, ages differ.
	ageSpread = 5
	// leaveTime is how long every answer closes its connection before idle
	// connections are closed unasked.
	leaveTime = 250 * time.Millisecond
	leavePoll = 5 * time.Millisecond
)

// listener hands out connections that know how to be closed, and no more of
// them at once than it was told.
type Listener struct {
	net.Listener
	cfg  Config
	open atomic.Int64
	left atomic.Bool // what is in unseen is to be closed
	mu   sync.Mutex
	// unseen are the connections of which fasthttp has seen nothing yet: nothing has
	// come, or only what refuse has answered. Guarded by mu.
	unseen map[*Conn]struct{}
}

// Config is what a listener is made of. Every field is needed.
type Config struct {
	MaxConnections int // at once
	// Overloaded is the whole HTTP answer to a connection too many.
	Overloaded []byte
	Rejected   prometheus.Counter // of connections too many
	Guard      *guard.Guard
	// Refuse answers the bytes of a request that needs no more than a refusal,
	// in their own buffer, which holds readAhead. It gives nil for all others.
	Refuse func(request []byte) (answer []byte)
	// As fasthttp has them, for requests that it never sees.
	IdleTimeout, WriteTimeout time.Duration
	MaxAge                    time.Duration // of connections, or up to a fifth less
}

// NewListener wraps the connections of inner.
func NewListener(inner net.Listener, cfg Config) *Listener {
	return &Listener{Listener: inner, cfg: cfg, unseen: make(map[*Conn]struct{})}
}

// Accept waits for the next connection that there is room for.
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
		// At best it reads why: to wait for that, or for a TLS handshake, would
		// hold up all others.
		if _, secure := inner.(*tls.Conn); !secure {
			_ = inner.SetWriteDeadline(time.Now().Add(turnAwayTime))
			_, _ = inner.Write(l.cfg.Overloaded)
		}
		_ = inner.Close()
	}
}

// hide notes a connection of which fasthttp has seen nothing, so that it takes it
// for one that was just made.
func (l *Listener) hide(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unseen[c] = struct{}{}
}

func (l *Listener) show(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.unseen, c)
}

// Drain stops to listen, waits a moment for connections to be closed by their
// next answer, or until ctx ends, and closes those that were never used.
func (l *Listener) Drain(ctx context.Context) {
	_ = l.Close() // fasthttp closes it once more, and reports that
	until := time.Now().Add(leaveTime)
	for l.open.Load() > 0 && time.Now().Before(until) && ctx.Err() == nil {
		time.Sleep(leavePoll)
	}
	l.leave()
}

// leave ends the connections that hide has noted. A server that stops would take
// them for new, and wait some seconds for their first request; but clients open
// connections in advance, and may never send one.
func (l *Listener) leave() {
	l.left.Store(true)
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.unseen {
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

func (l *Listener) wrap(inner net.Conn) *Conn {
	// Those that were made together do not all end together.
	age := l.cfg.MaxAge - rand.N(l.cfg.MaxAge/ageSpread+1)
	c := &Conn{Conn: inner, listener: l, silent: true, old: time.Now().Add(age)}
	c.hidden.Store(true)
	l.hide(c)
	return c
}

// conn is a connection of a listener. Except for Close it is used by one
// goroutine at a time: the one that serves it.
type Conn struct {
	net.Conn
	listener *Listener
	old      time.Time // from then on the next answer closes it

	// ahead holds what was read beyond what was asked for, from next to filled.
	// While it waits for a request, fasthttp lets go of its buffers and asks for
	// one byte; this is the little that most requests come in whole, so that
	// they cost no second system call.
	ahead        [readAhead]byte
	next, filled int

	reading, writing lazyDeadline

	framing framing
	// loose: framing found fault, and nothing more is read.
	loose bool
	// line counts the bytes that came since the last line feed. If a head
	// overflows the read buffer without one, it is the request line that is
	// too long, and not the headers.
	line int
	// silent: not a byte has come yet that was handed on.
	silent bool
	// muted: whatever is written now is dropped.
	muted bool
	// These are read by Close, which a server that shuts down may call too.
	refused atomic.Bool
	hidden  atomic.Bool // see listener.hide
	closing sync.Once
}

// Read notes that something came, and where lines end. It stops before what is
// framed loosely.
func (c *Conn) Read(p []byte) (int, error) {
	if c.loose {
		return 0, ErrAmbiguousFraming
	}
	n, err := c.readSome(p)
	good := 0 // also after a panic
	c.listener.cfg.Guard.Do("framing", func() { good = c.framing.follow(p[:n]) })
	if good < n {
		first := c.silent && good == 0
		n, c.loose, c.silent = good, true, false
		if first && len(p) == 1 {
			// fasthttp answers nobody who does not send even one byte, other
			// than a line feed. This one makes no request of what it stands for.
			p[0] = '?'
			return 1, nil
		}
		if n == 0 {
			return 0, ErrAmbiguousFraming
		}
	}
	c.silent = c.silent && n == 0
	if !c.silent && c.hidden.CompareAndSwap(true, false) {
		c.listener.show(c)
	}
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		c.line = n - at - 1
	} else {
		c.line += n
	}
	return n, err
}

// readSome gives what was read ahead, or else reads.
func (c *Conn) readSome(p []byte) (n int, err error) {
	if c.next == c.filled {
		if err := c.reading.apply(c.Conn.SetReadDeadline); err != nil {
			return 0, err
		}
		// After the deadline was set, or it might overwrite the one of leave.
		if c.silent && c.listener.left.Load() {
			return 0, errLeft
		}
		if len(p) != 1 {
			return c.Conn.Read(p)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n = copy(p, c.ahead[c.next:c.filled])
	c.next += n
	return n, nil
}

// fill reads ahead. As long as whole requests come that are refused, it answers
// them itself, and neither fasthttp nor framing ever sees them.
func (c *Conn) fill() (err error) {
	between := c.framing.between()
	for {
		c.next = 0
		if c.filled, err = c.Conn.Read(c.ahead[:]); c.filled == 0 {
			return err
		}
		// An error comes again with the next read.
		if !between {
			return nil
		}
		now := time.Now()
		if now.After(c.old) {
			return nil // the usual way ends with a close
		}
		answer := c.listener.cfg.Refuse(c.ahead[:c.filled])
		if answer == nil {
			return nil
		}
		c.filled = 0
		c.writing.wanted = now.Add(c.listener.cfg.WriteTimeout)
		if _, err := c.Write(answer); err != nil {
			return err
		}
		c.reading.wanted = now.Add(c.listener.cfg.IdleTimeout)
		if err := c.reading.apply(c.Conn.SetReadDeadline); err != nil {
			return err
		}
		// Likewise.
		if c.silent && c.listener.left.Load() {
			return errLeft
		}
	}
}

var errLeft = errors.New("the server stops")

// Write writes, unless the connection was muted.
func (c *Conn) Write(p []byte) (int, error) {
	if c.muted {
		return len(p), nil
	}
	if err := c.writing.apply(c.Conn.SetWriteDeadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetReadDeadline takes effect with the next Read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.reading.wanted = t
	return nil
}

// SetWriteDeadline takes effect with the next Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writing.wanted = t
	return nil
}

// SetDeadline takes effect with the next Read and the next Write.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reading.wanted, c.writing.wanted = t, t
	return nil
}

// Of returns the connection of a request; nil where it is none of a [Listener].
func Of(ctx *fasthttp.RequestCtx) *Conn {
	c, _ := ctx.Conn().(*Conn)
	return c
}

// Silent reports whether not a byte has come that was handed on.
func (c *Conn) Silent() bool { return c.silent }

// TooOld reports whether the answer to a request that came at a time must close
// the connection.
func (c *Conn) TooOld(came time.Time) bool { return came.After(c.old) }

// TakeChunkedBody reports whether the next chunked body was followed to its
// end. That it has not can only be a bug in one of the two readings.
func (c *Conn) TakeChunkedBody() bool { return c.framing.takeChunked() }

// DiscardWrites drops what is still written.
func (c *Conn) DiscardWrites() { c.muted = true }

// LingerOnClose tells that the rest of what the peer sends will not be read.
func (c *Conn) LingerOnClose() { c.refused.Store(true) }

// Close closes the connection. After a refusal it first lets the peer read the
// answer: closing on unread input makes TCP reset the connection, and the peer
// loses what was sent to it.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		defer c.listener.open.Add(-1)
		if c.hidden.Load() {
			c.listener.show(c)
		}
		if c.refused.Load() {
			c.linger()
		}
		err = c.Conn.Close()
	})
	return err
}

func (c *Conn) linger() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	if c.Conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
}
