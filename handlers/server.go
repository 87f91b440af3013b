package handlers

import (
	"context"
	"errors"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fasthttp/router"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/delivery/webhook"
	"licet/handlers/connection"
	"licet/handlers/limits"
	"licet/handlers/paypage"
	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/service"
	"licet/payment"
)

// Config is what a server is made of. Every field is needed unless it says
// otherwise.
type Config struct {
	Node    *service.Service
	Desk    *payment.Desk // not needed by the admin listener
	Metrics *metrics.Metrics
	Log     zerolog.Logger
	Tracer  *tracing.Tracer // nil: nothing is traced

	// PublicURL is where buyers and clients reach this service: pay links begin
	// with it, the pay page takes forms only from its origin, and signed requests
	// are signed for an address below it.
	PublicURL string

	// Ring is what API secrets are derived from, which requests may be signed
	// with. Not needed by the admin listener.
	Ring licensing.MasterRing
	// Webhooks judges the URLs of webhook endpoints, and Pings tries them. Neither is
	// needed by the admin listener.
	Webhooks webhook.Policy
	Pings    *webhook.Sender
	Limits   *limits.Limits // nil: none
	Proxies  limits.Proxies // believed for where a request came from

	RequestTimeout time.Duration // for the work on one request; 0: 4 s
	ReadTimeout    time.Duration // for one whole request to arrive; 0: 5 s
	WriteTimeout   time.Duration // for one whole answer to leave; 0: 10 s
	IdleTimeout    time.Duration // of a kept connection between requests; 0: 75 s
	MaxConnections int           // at once; 0: 16,384. One more is told 50301

	// MaxConnectionAge is the age, or up to a fifth less, at which the next answer closes a
	// kept connection: then its client comes by the balancer again, and to nodes that were
	// not there before. 0: 5 min.
	MaxConnectionAge time.Duration
}

const (
	defaultRequestTimeout = 4 * time.Second
	defaultReadTimeout    = 5 * time.Second
	defaultWriteTimeout   = 10 * time.Second
	defaultIdleTimeout    = 75 * time.Second
	defaultMaxConnections = 16384
	defaultConnectionAge  = 5 * time.Minute
)

// Server answers HTTP requests. Make it with [New] or [NewAdmin].
type Server struct {
	cfg      Config
	guard    *guard.Guard
	origin   string // of PublicURL
	basePath string // of PublicURL, without a slash at its end
	errors   map[licensing.Reason]kind
	pages    *paypage.Renderer

	matcher     *router.Router
	fixed       map[string]*resource // by path: those whose path has no variables
	bodyLimits  map[string]int       // by path, where it is not the usual one
	deadlines   connection.RequestDeadlines
	times       *metrics.RequestTimes
	activations activations
	pings       pings
	exchanges   sync.Pool       // of *exchange
	refusals    []*routeRefusal // never changed
	fast        *fasthttp.Server
	listener    atomic.Pointer[connection.Listener] // set by Serve
	leaving     atomic.Bool                         // every answer closes its connection; see Shutdown
	life        context.Context                     // ends with the first Shutdown, which ends all waits
	stop        context.CancelFunc
}

// New makes the server of the API and the pay page. It starts nothing.
func New(cfg Config) *Server { return newServer(cfg, apiRoutes()) }

func newServer(cfg Config, routes []route) *Server {
	setDefault(&cfg.RequestTimeout, defaultRequestTimeout)
	setDefault(&cfg.ReadTimeout, defaultReadTimeout)
	setDefault(&cfg.WriteTimeout, defaultWriteTimeout)
	setDefault(&cfg.IdleTimeout, defaultIdleTimeout)
	setDefault(&cfg.MaxConnections, defaultMaxConnections)
	setDefault(&cfg.MaxConnectionAge, defaultConnectionAge)
	setDefault(&cfg.Limits, new(limits.Limits))
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")

	s := &Server{cfg: cfg, guard: guard.New(cfg.Metrics, cfg.Log), errors: kinds(), pages: paypage.New()}
	s.life, s.stop = context.WithCancel(context.Background())
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		s.origin = origin(u)
		s.basePath = u.EscapedPath()
	}
	s.exchanges.New = func() any { return new(exchange) }
	s.deadlines.Timeout = cfg.RequestTimeout
	s.addRoutes(routes)
	s.count(routes)
	s.refusals = s.makeRefusals(routes)
	s.fast = &fasthttp.Server{
		Handler:        s.serve,
		ErrorHandler:   s.serveBroken,
		HeaderReceived: s.headReceived,
		Logger:         serverLog{cfg.Log},

		ReadTimeout:        cfg.ReadTimeout,
		WriteTimeout:       cfg.WriteTimeout,
		IdleTimeout:        cfg.IdleTimeout,
		ReadBufferSize:     connection.ReadBufferSize,
		MaxRequestBodySize: bodyLimit,
		// The listener counts connections itself, so that the one too many gets
		// an answer in our form; fasthttp must never come to its own count.
		Concurrency: cfg.MaxConnections + 1024,

		// Most connections are idle most of the time. Without this each of them
		// holds some 20 KiB of buffers; see conn.ahead for what it must not cost.
		ReduceMemoryUsage:            true,
		CloseOnShutdown:              true,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
	}
	return s
}

// origin is that of an address as a browser writes it: in lower case, and
// without the port that its scheme has anyway.
func origin(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch scheme {
	case "https":
		host = strings.TrimSuffix(host, ":443")
	case "http":
		host = strings.TrimSuffix(host, ":80")
	}
	return scheme + "://" + host
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Serve answers the connections of a listener until [Server.Shutdown], after
// which it returns nil.
func (s *Server) Serve(inner net.Listener) error {
	l := s.newListener(inner)
	s.listener.Store(l)
	return s.fast.Serve(l)
}

func (s *Server) newListener(inner net.Listener) *connection.Listener {
	return connection.NewListener(inner, connection.Config{
		MaxConnections: s.cfg.MaxConnections,
		Overloaded:     s.overloaded(),
		Rejected:       s.cfg.Metrics.CommandsShed.WithLabelValues("connection"),
		Guard:          s.guard,
		Refuse: func(request []byte) (answer []byte) {
			s.guard.Do("refusal", func() { answer = s.refuse(request) })
			return answer // nil after a panic: fasthttp then reads the request
		},
		IdleTimeout:  s.cfg.IdleTimeout,
		WriteTimeout: s.cfg.WriteTimeout,
		MaxAge:       s.cfg.MaxConnectionAge,
	})
}

// Shutdown stops listening, ends all waits for events, and makes every response close its connection.
// Soon after, Shutdown closes idle connections. It returns when every request has its response, or
// when ctx ends.
//
// fasthttp alone would close idle connections at once, even if a client has just sent its next
// request, which would then get no response. Busy clients have left before Shutdown closes idle
// connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.leaving.Store(true)
	s.stop()
	if l := s.listener.Load(); l != nil {
		l.Drain(ctx)
	}
	if err := s.fast.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}
