package connection

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/valyala/fasthttp"
)

const (
	// lingerTime and lingerBytes bound how much Close reads of a connection that lingers.
	lingerTime  = 500 * time.Millisecond
	lingerBytes = 256 << 10
	// readAheadSize is in bytes. Most requests fit.
	readAheadSize = 1 << 10
)

// errDraining is the error of a read from an unused connection while the listener drains.
var errDraining = errors.New("the server is shutting down")

// Conn is a connection that a [Listener] accepted. Only the goroutine that serves the connection
// uses the connection, except for Close, which is safe for concurrent use.
type Conn struct {
	net.Conn
	listener *Listener
	network  netip.Addr // see Config.Network
	expires  time.Time

	// readAhead contains bytes that were read before fasthttp asked for them: those from next to
	// filled. While fasthttp waits for a request, it frees its buffers and reads a single byte.
	// Without readAhead, the rest of the request would take a second system call.
	readAhead    [readAheadSize]byte
	next, filled int

	reading, writing lazyDeadline

	framing framing
	// ambiguous: framing has found a fault, and Read returns no further bytes.
	ambiguous bool
	// lineLength counts the bytes since the last line feed. If a head without a line feed
	// overflows the read buffer, then the request line is too long, not the headers.
	lineLength int
	// silent: Read has returned no byte yet.
	silent bool
	// discard: Write drops the bytes.
	discard bool
	// bodyRefused: Config.MaxBodies has no room for the body of the request, and Read returns no
	// further bytes.
	bodyRefused bool

	// Other goroutines use the fields below, also while a goroutine serves the connection.
	lingers atomic.Bool
	unused  atomic.Bool  // Read has returned no byte yet
	idle    atomic.Int64 // Listener.sinceStart when the wait for a request began; 0: busy; or evictedIdle
	body    atomic.Int64 // bytes taken of Config.MaxBodies
	written atomic.Pointer[func()]
	closing sync.Once
}

// Of returns the connection of a request, or nil if no [Listener] accepted it.
func Of(ctx *fasthttp.RequestCtx) *Conn {
	c, _ := ctx.Conn().(*Conn)
	return c
}

// Silent reports whether Read has returned no byte yet.
func (c *Conn) Silent() bool { return c.silent }

// Expired reports whether the response to a request received at a time must close the connection.
func (c *Conn) Expired(received time.Time) bool { return received.After(c.expires) }

// TakeChunkedBody reports whether framing has followed the next chunked body to its end. If it has
// not, then framing and fasthttp disagree, which is a bug in one of them.
func (c *Conn) TakeChunkedBody() bool { return c.framing.takeChunkedBody() }

// DiscardWrites makes Write drop its bytes from now on.
func (c *Conn) DiscardWrites() { c.discard = true }

// LingerOnClose makes Close wait until the client has read the response. Call LingerOnClose if the
// server won't read the rest of what the client sends.
func (c *Conn) LingerOnClose() { c.lingers.Store(true) }

// Read implements net.Conn. Read returns [ErrAmbiguousFraming] in place of bytes whose framing is
// ambiguous, and ever after.
func (c *Conn) Read(p []byte) (int, error) {
	switch {
	case c.ambiguous:
		return 0, ErrAmbiguousFraming
	case c.bodyRefused:
		return 0, errBodyRefused
	}
	c.EndResponse() // fasthttp reads only after it has written the response
	n, err := c.readSome(p)
	accepted := 0 // also after a panic
	c.listener.cfg.Guard.Do("framing", func() { accepted = c.framing.scan(p[:n]) })
	if accepted < n {
		first := c.silent && accepted == 0
		n, c.ambiguous, c.silent = accepted, true, false
		if first && len(p) == 1 {
			// fasthttp sends no response before it has read a byte other than a line feed. No
			// request starts with this byte.
			p[0] = '?'
			return 1, nil
		}
		if n == 0 {
			return 0, ErrAmbiguousFraming
		}
	}
	c.silent = c.silent && n == 0
	if !c.silent && c.unused.Load() {
		c.unused.Store(false)
	}
	if at := bytes.LastIndexByte(p[:n], '\n'); at >= 0 {
		c.lineLength = n - at - 1
	} else {
		c.lineLength += n
	}
	return n, err
}

// readSome returns bytes from readAhead, or else reads from the network.
func (c *Conn) readSome(p []byte) (n int, err error) {
	if c.next == c.filled {
		if err := c.reading.apply(c.Conn.SetReadDeadline); err != nil {
			return 0, err
		}
		// Only now: an earlier check might miss interruptUnused, whose deadline apply has then
		// overwritten.
		if c.silent && c.listener.draining.Load() {
			return 0, errDraining
		}
		if !c.takeBody() {
			c.bodyRefused = true
			c.listener.cfg.BodyRefused.Inc()
			return 0, errBodyRefused
		}
		if len(p) != 1 {
			return c.Conn.Read(p)
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
	}
	n = copy(p, c.readAhead[c.next:c.filled])
	c.next += n
	return n, nil
}

// fill reads into readAhead. As long as the client sends complete requests that Config.Refuse
// answers, fill writes the responses: neither fasthttp nor framing sees these requests.
func (c *Conn) fill() (err error) {
	atStart := c.framing.atRequestStart()
	for {
		if atStart {
			c.giveBody()
			c.beginIdle()
		}
		c.next = 0
		if c.filled, err = c.Conn.Read(c.readAhead[:]); c.filled == 0 {
			return err
		}
		if atStart && !c.endIdle() {
			c.filled = 0
			return net.ErrClosed
		}
		// The next read returns the error again.
		if !atStart {
			return nil
		}
		now := time.Now()
		if c.Expired(now) {
			return nil // handlers closes the connection with its response
		}
		response := c.listener.cfg.Refuse(c.readAhead[:c.filled])
		if response == nil {
			return nil
		}
		c.filled = 0
		c.writing.wanted = now.Add(c.listener.cfg.WriteTimeout)
		if _, err := c.Write(response); err != nil {
			return err
		}
		c.reading.wanted = now.Add(c.listener.cfg.IdleTimeout)
		if err := c.reading.apply(c.Conn.SetReadDeadline); err != nil {
			return err
		}
		// Only now, as in readSome.
		if c.silent && c.listener.draining.Load() {
			return errDraining
		}
	}
}

// SetReadDeadline implements net.Conn. The deadline takes effect with the next Read.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.reading.wanted = t
	return nil
}

// SetWriteDeadline implements net.Conn. The deadline takes effect with the next Write.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.writing.wanted = t
	return nil
}

// SetDeadline implements net.Conn. The deadline takes effect with the next Read and the next Write.
func (c *Conn) SetDeadline(t time.Time) error {
	c.reading.wanted, c.writing.wanted = t, t
	return nil
}

// Close closes the connection. After LingerOnClose, Close first gives the client time to read the
// response: TCP resets a connection that is closed with unread input, and the client then loses the
// response.
func (c *Conn) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		defer c.listener.remove(c)
		c.EndResponse()
		c.giveBody()
		if c.lingers.Load() {
			c.linger()
		}
		err = c.Conn.Close()
	})
	return err
}

// linger closes the sending half of the connection and reads until the client has closed the other
// half, within lingerTime and lingerBytes.
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
