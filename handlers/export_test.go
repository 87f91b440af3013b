package handlers

import (
	"net"
	"runtime"

	"github.com/valyala/fasthttp"

	"licet/handlers/limits"
)

// ServeRequest serves a request that is already parsed.
func (s *Server) ServeRequest(ctx *fasthttp.RequestCtx) { s.serve(ctx) }

// ServeConn serves one connection as if it came from a network listener.
func (s *Server) ServeConn(inner net.Conn) error {
	c, err := s.newListener(oneConn{inner}).Accept()
	if err != nil {
		return err
	}
	return s.fast.ServeConn(c)
}

// oneConn is a listener that accepts one connection.
type oneConn struct{ net.Conn }

func (c oneConn) Accept() (net.Conn, error) { return c.Conn, nil }

func (c oneConn) Addr() net.Addr { return c.LocalAddr() }

// SetLimits replaces the limits of a server. The server must not serve a request meanwhile.
func (s *Server) SetLimits(l *limits.Limits) { s.rates.limits = l }

// Refuse returns what a connection sends before fasthttp reads the request; nil if fasthttp reads it.
func (s *Server) Refuse(request []byte) []byte { return s.refusals.refuse(request) }

// AwaitLookUpsWaiting returns when count requests wait to look credentials up.
func (s *Server) AwaitLookUpsWaiting(count int) {
	for s.rates.lookUps.Waiting() != count {
		runtime.Gosched()
	}
}

// Tap makes a server show each request with its response before the response leaves. The server must not serve a
// request yet.
func (s *Server) Tap(see func(ctx *fasthttp.RequestCtx)) {
	serve := s.fast.Handler
	s.fast.Handler = func(ctx *fasthttp.RequestCtx) {
		serve(ctx)
		see(ctx)
	}
}
