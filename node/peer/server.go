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

	"licet/licensing"
	"licet/metrics"
	"licet/metrics/guard"
	"licet/node"
	"licet/node/store"
)

const (
	hopPath = "/hop"
	// maxMessage bounds the commands of a hop, and its answer. The most that a
	// command can say is some kilobytes.
	maxMessage = 2 << 20
	// readTimeout bounds the reading of one request, idleTimeout the wait for the
	// next one. Callers hang up earlier.
	readTimeout  = 5 * time.Second
	idleTimeout  = 60 * time.Second
	writeTimeout = 5 * time.Second
	// maxCallers bounds the connections. Each node has a few to each other.
	maxCallers = 128
	// complaints is how many refusals are logged in a complaintSpan: whoever reaches
	// the listener can bring them about.
	complaints    = 10
	complaintSpan = time.Minute
)

// The first byte of an answer, and behind it the age of the node in nanoseconds,
// as 8 bytes.
const (
	answered byte = 1 // then come the answers
	refused  byte = 2 // then comes why; nothing was run
)

const answerHead = 1 + 8

// Executor runs commands that another node has sent, as node.Node does.
type Executor interface {
	Execute(hop node.Hop) (node.HopAnswer, error)
}

// Server takes commands from other nodes. Make it with [NewServer].
type Server struct {
	self     store.Incarnation
	sealer   sealer
	executor Executor
	codec    codec
	identity *identity
	born     time.Time
	guard    *guard.Guard
	log      zerolog.Logger
	refusals zerolog.Logger
	http     *fasthttp.Server
}

// NewServer makes a server for the node of an incarnation. The key it shows is
// new.
func NewServer(
	self store.Incarnation, ring licensing.MasterRing, executor Executor, m *metrics.Metrics, log zerolog.Logger,
) (*Server, error) {
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	codec, err := newCodec()
	if err != nil {
		return nil, err
	}
	sealer, err := newSealer(ring)
	if err != nil {
		return nil, err
	}
	s := &Server{
		self: self, sealer: sealer, executor: executor, codec: codec, identity: identity,
		born: time.Now(), guard: guard.New(m, log), log: log,
		refusals: log.Sample(&zerolog.BurstSampler{Burst: complaints, Period: complaintSpan}),
	}
	s.http = &fasthttp.Server{
		Handler:                      s.handle,
		HeaderReceived:               s.look,
		ErrorHandler:                 s.unread,
		Name:                         "licet",
		Concurrency:                  2 * maxCallers, // never reached, see limited
		ReadTimeout:                  readTimeout,
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

// Registration is how others find the server at an address.
func (s *Server) Registration(address string) store.Registration {
	return store.Registration{Incarnation: s.self, Address: address, PublicKey: s.identity.publicKey}
}

// Serve takes commands until Shutdown, or until the listener fails.
func (s *Server) Serve(listener net.Listener) error {
	return s.http.Serve(tls.NewListener(&limited{Listener: listener, most: maxCallers}, s.identity.serverConfig()))
}

// Shutdown lets what is under way end, until ctx does.
func (s *Server) Shutdown(ctx context.Context) error { return s.http.ShutdownWithContext(ctx) }

// age is the time by this node's own clock, which no other clock moves.
func (s *Server) age() time.Duration { return time.Since(s.born) }

// look bounds what is read of a request, of which the header is there: what its
// seal says, or as good as nothing.
func (s *Server) look(header *fasthttp.RequestHeader) fasthttp.RequestConfig {
	size := uint64(0)
	s.guard.Do("seal", func() {
		if said, err := s.sealer.open(header.Peek(sealHeader), s.self); err == nil {
			size = min(said.size, maxMessage)
		}
	})
	return fasthttp.RequestConfig{MaxRequestBodySize: int(max(size, 1))} // 0: no bound
}

// unread answers a request that could not be read, of which nothing was run.
func (s *Server) unread(ctx *fasthttp.RequestCtx, err error) {
	s.write(ctx, refused, []byte(s.refuse(err).Error()))
}

func (s *Server) handle(ctx *fasthttp.RequestCtx) {
	if !s.guard.Do("hop", func() { s.serve(ctx) }) {
		// What it did until then is not known, and 500 says nothing else.
		ctx.Response.Reset()
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

func (s *Server) serve(ctx *fasthttp.RequestCtx) {
	if !ctx.IsPost() || string(ctx.Path()) != hopPath {
		ctx.SetStatusCode(fasthttp.StatusNotFound)
		return
	}
	body, err := s.answer(&ctx.Request.Header, ctx.PostBody())
	switch {
	case err == nil:
		s.write(ctx, answered, body)
	case errors.Is(err, node.ErrNotTaken):
		s.write(ctx, refused, []byte(err.Error()))
	default:
		s.log.Error().Err(err).Msg("the answers to a hop can't be written")
		ctx.SetStatusCode(fasthttp.StatusInternalServerError)
	}
}

// answer runs sealed commands. An error that is not ErrNotTaken comes after they
// were run.
func (s *Server) answer(head *fasthttp.RequestHeader, body []byte) ([]byte, error) {
	said, err := s.sealer.open(head.Peek(sealHeader), s.self)
	if err == nil && !said.holds(body) {
		err = errSeal
	}
	if err != nil {
		return nil, s.refuse(err)
	}
	if len(body) == 0 {
		return nil, nil // it wants to know our age
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

// refuse is for what no node sends as a rule.
func (s *Server) refuse(why error) error {
	s.refusals.Warn().Err(why).Msg("another node's commands were refused")
	return fmt.Errorf("%w: %w", node.ErrNotTaken, why)
}

func (s *Server) write(ctx *fasthttp.RequestCtx, kind byte, body []byte) {
	b := binary.BigEndian.AppendUint64([]byte{kind}, uint64(s.age()))
	ctx.Response.SetBodyRaw(append(b, body...))
}

// silent keeps fasthttp from logging what broken connections are like.
type silent struct{}

func (silent) Printf(string, ...any) {}
