package handlers

import (
	"net"

	"github.com/valyala/fasthttp"

	"licet/handlers/limits"
)

// ServeRequest answers a request that is parsed already.
func (s *Server) ServeRequest(ctx *fasthttp.RequestCtx) { s.serve(ctx) }

// ServeConn serves one connection, as if the listener had accepted it.
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

// SetLimits gives a server that serves nothing other limits.
func (s *Server) SetLimits(l *limits.Limits) { s.cfg.Limits = l }

// Refuse answers the bytes of a request as a connection does before fasthttp
// sees them; nil: it does not.
func (s *Server) Refuse(request []byte) []byte { return s.refuse(request) }
