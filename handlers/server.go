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

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/delivery/webhook"
	"licet/handlers/connection"
	"licet/handlers/docs"
	"licet/handlers/limits"
	"licet/handlers/paypage"
	"licet/internal/fair"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/metrics/tracing"
	"licet/node/service"
	"licet/payment"
)

// Config configures a [Server]. Every field is required, unless its comment says otherwise.
type Config struct {
	Node    *service.Service
	Desk    *payment.Desk // not used by the admin listener
	Metrics *metrics.Metrics
	Log     zerolog.Logger
	Tracer  *tracing.Tracer // nil: no tracing

	// PublicURL is the address at which customers and clients reach this service. Payment links
	// begin with it, the pay page accepts forms only from its origin, and clients sign requests
	// for a URL below it.
	PublicURL string
	// Docs serves the API reference, and adds the address of the error's section to each error. Not used by the admin
	// listener.
	Docs bool
	Home *Home // nil: no page at /. Not used by the admin listener

	// Ring derives the API secrets that clients sign requests with, and the pay tokens of orders. The
	// admin listener does not use it.
	Ring keyring.MasterRing
	// Webhooks decides which URLs webhook endpoints may have, and Pings sends them test messages.
	// The admin listener uses neither.
	Webhooks webhook.Policy
	Pings    *webhook.Sender
	Limits   *limits.Limits // nil: no limits
	Proxies  limits.Proxies // trusted to name the client's address

	RequestTimeout time.Duration // for the work on a request; 0: 4 s
	ReadTimeout    time.Duration // for a whole request to arrive; 0: 5 s
	WriteTimeout   time.Duration // for a whole response to leave; 0: 10 s
	IdleTimeout    time.Duration // of a kept connection between requests; 0: 75 s
	MaxConnections int           // at once; 0: 16,384. Any further connection gets the code 50301
	MaxResponses   int64         // bytes of responses that have not left yet; see responses. 0: 64 MiB
	MaxBodies      int64         // bytes of request bodies at once; see connection.Config. 0: 64 MiB

	// MaxConnectionAge is the age at which the next response closes a kept connection, or up to a
	// fifth less. The client then connects through the load balancer again, perhaps to a node
	// that is new. 0: 5 min.
	MaxConnectionAge time.Duration
}

const (
	defaultRequestTimeout = 4 * time.Second
	defaultReadTimeout    = 5 * time.Second
	defaultWriteTimeout   = 10 * time.Second
	defaultIdleTimeout    = 75 * time.Second
	defaultMaxConnections = 16384
	defaultMaxBodies      = 64 << 20
	defaultMaxResponses   = 64 << 20
	defaultConnectionAge  = 5 * time.Minute
)

// Server serves HTTP requests. Make it with [New] or [NewAdmin].
type Server struct {
	cfg      Config
	guard    *guard.Guard
	origin   string // of PublicURL
	basePath string // of PublicURL, without a slash at its end
	errors   errorTable
	pages    *paypage.Renderer
	docs     *docs.Renderer
	files    *files

	table *routeTable
	rates rateLimits
	renderer
	events      eventRenderer
	accessLog   accessLog
	deadlines   connection.RequestDeadlines
	times       *metrics.RequestTimes
	activations activations
	pings       *fair.Places[licensing.Owner]
	responses   responses
	requests    sync.Pool // of *request
	refusals    *refusals
	fast        *fasthttp.Server
	listener    atomic.Pointer[connection.Listener] // set by Serve
	stopping    atomic.Bool                         // every response closes its connection; see Shutdown

	life context.Context // ends with the first Shutdown, and all waits with it
	stop context.CancelFunc
}

// New returns the server of the API and of the pages. New starts nothing.
func New(cfg Config) *Server {
	routes := apiRoutes()
	if cfg.Docs {
		routes = append(routes, referenceRoutes()...)
	}
	if cfg.Home != nil {
		routes = append(routes, homeRoutes()...)
	}
	return newServer(cfg, routes)
}

func newServer(cfg Config, routes []route) *Server {
	setDefault(&cfg.RequestTimeout, defaultRequestTimeout)
	setDefault(&cfg.ReadTimeout, defaultReadTimeout)
	setDefault(&cfg.WriteTimeout, defaultWriteTimeout)
	setDefault(&cfg.IdleTimeout, defaultIdleTimeout)
	setDefault(&cfg.MaxConnections, defaultMaxConnections)
	setDefault(&cfg.MaxBodies, defaultMaxBodies)
	setDefault(&cfg.MaxResponses, defaultMaxResponses)
	setDefault(&cfg.MaxConnectionAge, defaultConnectionAge)
	setDefault(&cfg.Limits, new(limits.Limits))
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")

	s := &Server{
		cfg: cfg, guard: guard.New(cfg.Metrics, cfg.Log), errors: kinds(), pages: paypage.New(), pings: newPings(),
	}
	s.life, s.stop = context.WithCancel(context.Background())
	if u, err := url.Parse(cfg.PublicURL); err == nil && u.Host != "" {
		s.origin = origin(u)
		s.basePath = u.EscapedPath()
	}
	s.docs = docs.New(s.basePath)
	s.files = newFiles(s.docs, cfg.Docs)
	s.responses = responses{
		bytes: fair.NewShares[licensing.Owner](cfg.MaxResponses),
		shed:  cfg.Metrics.CommandsShed.WithLabelValues("responses"),
	}
	cfg.Metrics.ResponseBytes.AddSource(func() float64 { return float64(s.responses.bytes.Taken()) })
	s.requests.New = func() any { return new(request) }
	s.deadlines.Timeout = cfg.RequestTimeout
	s.table = newRouteTable(routes)
	s.rates = newRateLimits(&cfg)
	s.renderer = renderer{payLinks{publicURL: cfg.PublicURL, ring: cfg.Ring, log: cfg.Log}, cfg.Node.LicenseKeys()}
	s.events = eventRenderer{renderer: &s.renderer, metrics: cfg.Metrics, log: cfg.Log, guard: s.guard}
	s.accessLog = accessLog{log: cfg.Log, overloaded: s.errors[licensing.ReasonOverloaded].code()}
	s.count(routes)
	s.refusals = newRefusals(s, routes)
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
		// The listener limits connections, so that a refused one gets our response. fasthttp's own
		// limit must never apply.
		Concurrency: cfg.MaxConnections + connection.Spare,

		// Most connections are idle most of the time. Without ReduceMemoryUsage, each of them keeps
		// about 20 KiB of buffers. connection.Conn reads ahead to make up for the cost.
		ReduceMemoryUsage:            true,
		CloseOnShutdown:              true,
		DisablePreParseMultipartForm: true,
		NoDefaultServerHeader:        true,
		NoDefaultContentType:         true,
		SecureErrorLogMessage:        true,
	}
	return s
}

// origin returns the origin of a URL as a browser writes it: in lower case, without the default port
// of its scheme.
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

// Shutdown stops listening, ends all waits for events, and makes every response close its connection.
// Soon after, Shutdown closes idle connections. It returns when every request has its response, or
// when ctx ends.
//
// fasthttp alone would close idle connections at once, even if a client has just sent its next
// request, which would then get no response. Busy clients have left before Shutdown closes idle
// connections.
func (s *Server) Shutdown(ctx context.Context) error {
	s.stopping.Store(true)
	s.stop()
	if l := s.listener.Load(); l != nil {
		l.Drain(ctx)
	}
	if err := s.fast.ShutdownWithContext(ctx); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

const (
	// bodyLimit bounds a body in bytes.
	bodyLimit = 64 << 10
	// openBodyLimit bounds a body on the routes that need no API key.
	openBodyLimit = 16 << 10
)

// headReceived sets the body limit of a request before fasthttp reads the body. If CheckHead refuses
// the head, headReceived makes fasthttp neither invite a body by 100 Continue nor read one. dispatch
// then checks the same raw bytes again, sends the error and closes the connection.
func (s *Server) headReceived(h *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limit := bodyLimit
	s.guard.Do("head", func() {
		limit = s.bodyLimit(h)
		if _, err := connection.CheckHead(h, limit); err != nil {
			h.SetContentLength(0)
			h.Del(fasthttp.HeaderExpect)
		}
	})
	return fasthttp.RequestConfig{MaxRequestBodySize: limit}
}

// renderer makes the parts of answers that need more than a record: the texts of license keys, and links to pay pages.
type renderer struct {
	payLinks payLinks
	keys     keyring.LicenseKeys
}
