package handlers

import (
	"net"
	"net/netip"
	"time"

	"github.com/rs/zerolog"

	"licet/handlers/connection"
)

// A server logs at most maxRefusalLogs refused connections in refusalLogPeriod: any client can cause
// them.
const (
	maxRefusalLogs   = 5
	refusalLogPeriod = time.Minute
)

// Serve serves the connections of a listener. It returns nil after [Server.Shutdown].
func (s *Server) Serve(inner net.Listener) error {
	l := s.newListener(inner)
	s.cfg.Metrics.BodyBytes.AddSource(func() float64 { return float64(l.BodyBytes()) })
	s.listener.Store(l)
	return s.fast.Serve(l)
}

func (s *Server) newListener(inner net.Listener) *connection.Listener {
	return connection.NewListener(inner, connection.Config{
		MaxConnections: s.cfg.MaxConnections,
		Overloaded:     s.overloaded(),
		Network:        s.cfg.Proxies.Peer,
		Refused:        s.connectionRefusals(),
		Evicted:        s.cfg.Metrics.IdleConnectionsClosed,
		MaxBodies:      s.cfg.MaxBodies,
		MaxBody:        bodyLimit,
		BodyRefused:    s.cfg.Metrics.CommandsShed.WithLabelValues("bodies"),
		Guard:          s.guard,
		Refuse: func(request []byte) (response []byte) {
			s.guard.Do("refusal", func() { response = s.refusals.refuse(request) })
			return response // nil after a panic: fasthttp then reads the request
		},
		IdleTimeout:  s.cfg.IdleTimeout,
		WriteTimeout: s.cfg.WriteTimeout,
		MaxAge:       s.cfg.MaxConnectionAge,
	})
}

// connectionRefusals returns the function that counts and logs refused connections.
func (s *Server) connectionRefusals() func(network netip.Addr, full bool) {
	log := s.cfg.Log.Sample(&zerolog.BurstSampler{Burst: maxRefusalLogs, Period: refusalLogPeriod})
	ofNode := s.cfg.Metrics.CommandsShed.WithLabelValues("connection")
	ofAddress := s.cfg.Metrics.CommandsShed.WithLabelValues("connection_address")
	return func(network netip.Addr, full bool) {
		if full {
			ofNode.Inc()
			log.Warn().Int("limit", s.cfg.MaxConnections).
				Msg("refused a connection: as many connections are open as the node accepts")
			return
		}
		ofAddress.Inc()
		log.Warn().Str("address", network.String()).Int("limit", s.cfg.MaxConnections).
			Msg("refused a connection: this address has as many connections as are still free. " +
				"If this is the address of a load balancer or an ingress, name it in --trusted-proxies")
	}
}
