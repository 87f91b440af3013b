package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// defaultTimeout is for a whole attempt, from the name to the last byte that is
	// read of the answer.
	defaultTimeout = 15 * time.Second

	maxAnswer = 64 << 10 // bytes of an answer's header and of its body that are read
	maxKept   = 1 << 10  // bytes of the body that are told

	// An endpoint that is well gets some dozen messages at a time. A connection that
	// is not kept for the next one costs both sides more than the message does.
	idlePerHost = 32
	idleAll     = 256
	idleTimeout = 30 * time.Second
)

// Config is what a [Sender] needs. The zero values of its last three work.
type Config struct {
	Policy  Policy
	Version string           // of the service, for User-Agent
	Clock   func() time.Time // as time.Now is

	Timeout  time.Duration  // of a whole attempt; 0: 15 seconds
	Resolver *net.Resolver  // nil: the system's
	RootCAs  *x509.CertPool // nil: the system's
}

// Sender makes attempts. Make it with [NewSender], and close it. It may be used
// by many goroutines at once; how many attempts are under way is theirs to bound.
type Sender struct {
	policy    Policy
	userAgent string
	clock     func() time.Time
	timeout   time.Duration
	secure    *http.Transport
	plain     *http.Transport // to this machine only
}

// NewSender makes a sender.
func NewSender(cfg Config) *Sender {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	secure := cfg.dialer()
	secure.Control = cfg.Policy.guard().control
	plain := cfg.dialer()
	plain.Control = controlLoopback
	return &Sender{
		policy:    cfg.Policy,
		userAgent: "Licet/" + cfg.Version,
		clock:     cfg.Clock,
		timeout:   cfg.Timeout,
		secure:    cfg.transport(secure),
		plain:     cfg.transport(plain),
	}
}

func (cfg *Config) dialer() *net.Dialer {
	return &net.Dialer{Timeout: cfg.Timeout, Resolver: cfg.Resolver}
}

// transport trusts a receiver with little. It has no proxy, not even of the
// environment: a proxy would dial in our place. It does not unpack what is
// compressed, since little may become much.
func (cfg *Config) transport(dialer *net.Dialer) *http.Transport {
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: cfg.RootCAs},
		TLSHandshakeTimeout:    cfg.Timeout,
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxAnswer,
		MaxIdleConns:           idleAll,
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2: &http.HTTP2Config{
			// What may lie here unread.
			MaxReceiveBufferPerStream:     maxAnswer,
			MaxReceiveBufferPerConnection: 16 * maxAnswer,
			// A connection that has died is not kept for the next message.
			SendPingTimeout:  cfg.Timeout,
			PingTimeout:      cfg.Timeout,
			WriteByteTimeout: cfg.Timeout,
		},
	}
}

// Close closes the connections that are kept. Attempts that are under way go on.
func (s *Sender) Close() {
	s.secure.CloseIdleConnections()
	s.plain.CloseIdleConnections()
}

// Message is what is sent in one attempt.
type Message struct {
	ID      string // the event's, without a point in it: the same in every attempt
	URL     string // of the endpoint
	Body    []byte // JSON
	Secrets []Secret
}

// Send makes one attempt. What becomes of it is in the Attempt, except where ctx
// ends before there is an answer: then nobody knows, that error is returned, and
// the attempt should not be counted.
func (s *Sender) Send(ctx context.Context, m Message) (Attempt, error) {
	if m.ID == "" || strings.Contains(m.ID, ".") || len(m.Secrets) == 0 {
		return Attempt{}, errors.New("a webhook message needs an id without a point, and a secret")
	}
	begun := s.clock()
	attempt := Attempt{At: begun}
	span := beginTrace(ctx)
	defer func() { endTrace(span, &attempt) }()
	if problem := s.policy.CheckURL(m.URL); problem != "" {
		// It was allowed when the endpoint was made.
		attempt.fail(FailureURL, errors.New("the endpoint's URL "+problem))
		return attempt, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var seen progress
	request, err := s.request(seen.watch(limited), m, begun)
	if err != nil {
		return Attempt{}, err
	}
	// Not through an http.Client: it would follow redirects and keep cookies, and
	// its errors tell the whole URL, which may hold a secret of the receiver's.
	response, err := s.transport(request).RoundTrip(request)
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return Attempt{}, ended
		}
		attempt.fail(classify(err, limited.Err() != nil, &seen), err)
	} else {
		attempt.take(response, s.clock)
	}
	attempt.Duration = s.clock().Sub(begun)
	return attempt, nil
}

func (s *Sender) transport(request *http.Request) *http.Transport {
	if request.URL.Scheme == "http" {
		return s.plain
	}
	return s.secure
}

func (s *Sender) request(ctx context.Context, m Message, at time.Time) (*http.Request, error) {
	signed, err := signature(m.Secrets, m.ID, at, m.Body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", s.userAgent)
	request.Header.Set(standardwebhooks.HeaderWebhookID, m.ID)
	request.Header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	request.Header.Set(standardwebhooks.HeaderWebhookSignature, signed)
	return request, nil
}
