package peer

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/store"
)

const (
	hopPath = "/hop"
	// maxMessage bounds the commands of a hop, and its answer. A command has at most some kilobytes.
	maxMessage = 2 << 20
	// headTimeout bounds the TLS handshake and the head of a request: until then the caller is a stranger.
	// readTimeout bounds the rest of a request with a valid signature, idleTimeout the wait for the next one. Callers
	// close idle connections earlier.
	headTimeout  = time.Second
	readTimeout  = 5 * time.Second
	idleTimeout  = 60 * time.Second
	writeTimeout = 5 * time.Second
	// maxCallers bounds the connections of nodes, and those of strangers. Each node has a few to each other node.
	maxCallers = 128
	// maxRefusalLogs bounds the refusals that are logged in a refusalLogPeriod: any client that
	// reaches the listener can cause refusals.
	maxRefusalLogs   = 10
	refusalLogPeriod = time.Minute
)

// The first byte of an answer. The age of the node in nanoseconds follows, as 8 bytes.
const (
	answered byte = 1 // then the results follow
	refused  byte = 2 // then the reason follows; no command was run
)

const answerHead = 1 + 8

// Executor runs commands that another node has sent. node.Node implements it.
type Executor interface {
	Execute(hop node.Hop) (node.HopAnswer, error)
}

// Server accepts commands from other nodes. Create it with [NewServer].
type Server struct {
	self     store.Incarnation
	signer   signer
	executor Executor
	codec    codec
	identity *identity
	born     time.Time
	guard    *guard.Guard
	log      zerolog.Logger
	refusals zerolog.Logger
	http     *fasthttp.Server
}

// NewServer returns a server for the node with an incarnation. It creates a new TLS key.
func NewServer(
	self store.Incarnation, ring keyring.MasterRing, executor Executor, m *metrics.Metrics, log zerolog.Logger,
) (*Server, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	signer, err := newSigner(ring)
	if err != nil {
		return nil, err
	}
	s := &Server{
		self: self, signer: signer, executor: executor, codec: codec, identity: identity,
		born: time.Now(), guard: guard.New(m, log), log: log,
		refusals: log.Sample(&zerolog.BurstSampler{Burst: maxRefusalLogs, Period: refusalLogPeriod}),
	}
	s.http = &fasthttp.Server{
		Handler:                      s.handle,
		HeaderReceived:               s.limitBody,
		ErrorHandler:                 s.unread,
		Name:                         "licet",
		Concurrency:                  4 * maxCallers, // never reached, see callers
		ReadTimeout:                  headTimeout,
		WriteTimeout:                 writeTimeout,
		IdleTimeout:                  idleTimeout,
		MaxRequestBodySize:           maxMessage,
		ReadBufferSize:               16 << 10,
		NoDefaultContentType:         true,
		NoDefaultDate:                true,
		DisablePreParseMultipartForm: true,
		CloseOnShutdown:              true,
		Logger:                       silent{},
	}
	return s, nil
}

// Registration returns the registration of the server at an address.
func (s *Server) Registration(address string) store.Registration {
	return store.Registration{Incarnation: s.self, Address: address, PublicKey: s.identity.publicKey}
}

// Serve accepts commands until Shutdown, or until the listener fails.
func (s *Server) Serve(listener net.Listener) error {
	return s.http.Serve(tls.NewListener(newCallers(listener, maxCallers), s.identity.serverConfig()))
}

// Shutdown waits until running requests end, or ctx ends.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

// age returns the time since the node started, by the monotonic clock.
func (s *Server) age() time.Duration { return time.Since(s.born) }

// limitBody bounds the body of a request once its header is read: to the size in a valid signature, or to
// one byte.
func (s *Server) limitBody(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	limits := fasthttp.RequestConfig{MaxRequestBodySize: 1} // 0: no bound
	s.guard.Do("signature", func() {
		if said, err := s.signer.verify(header.Peek(signatureHeader), s.self); err == nil {
			limits.MaxRequestBodySize = int(min(max(said.size, 1), maxMessage))
			limits.ReadTimeout = readTimeout
		}
	})
	return limits
}

// unread answers a request that could not be read. No command of it was run.
func (s *Server) unread(ctx *fasthttp.RequestCtx, err error) { s.turnAway(ctx, err) }

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if !s.guard.Do("hop", func() { s.serve(ctx) }) {
		// The outcome of the commands is unknown, and status 500 says nothing about it.
		ctx.Response.Reset()
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	said, err := s.signer.verify(ctx.Request.Header.Peek(signatureHeader), s.self)
	switch {
	case errors.Is(err, errNotForUs): // the signature itself is valid
		s.write(ctx, refused, []byte(s.refuse(err).Error()))
		return
	case err == nil && (!ctx.IsPost() || string(ctx.Path()) != hopPath || !said.covers(ctx.PostBody())):
		err = errSignature
	case err == nil && !isNode(ctx.Conn()):
		err = errTooMany
	}
	if err != nil {
		s.turnAway(ctx, err)
		return
	}
	body, err := s.answer(&ctx.Request.Header, said, ctx.PostBody())
	switch {
	case err == nil:
		s.write(ctx, answered, body)
	case errors.Is(err, node.ErrNotTaken):
		s.write(ctx, refused, []byte(err.Error()))
	default:
		s.log.Error().Err(err).Msg("can't encode the results of a hop")
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

// answer runs signed commands. If it returns an error other than ErrNotTaken, the commands have run.
func (s *Server) answer(head *fasthttp.RequestHeader, said signature, body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, nil // the caller asks only for the age
	}
	hop, err := s.codec.readRequest(body)
	if err != nil {
		return nil, s.refuse(err)
	}
	hop.Over, hop.Trace = s.born.Add(said.over), traceOf(head)
	answers, err := s.executor.Execute(hop)
	if err != nil {
		return nil, err
	}
	return s.codec.reply(answers)
}

// turnAway answers a stranger and closes the connection. All strangers get the same answer, whatever they have sent;
// the log has the reason.
func (s *Server) turnAway(ctx *fasthttp.RequestCtx, why error) {
	_ = s.refuse(why) // the caller does not get the reason
	ctx.SetConnectionClose()
	s.write(ctx, refused, []byte(errSignature.Error()))
}

// refuse logs and returns a refusal of a request that no correct node sends.
func (s *Server) refuse(why error) error {
	s.refusals.Warn().Err(why).Msg("refused commands of another node")
	return fmt.Errorf("%w: %w", node.ErrNotTaken, why)
}

func (s *Server) write(ctx *fasthttp.RequestCtx, kind byte, body []byte) {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(s.age()))
	ctx.Response.SetBodyRaw(append(b, body...))
}

// silent discards the log of fasthttp, which reports every broken connection.
type silent struct{}

func (silent) Printf(string, ...any) {}
