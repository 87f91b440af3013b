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
	// defaultTimeout bounds a whole attempt, from resolving the name to reading the last byte of the response.
	defaultTimeout = 15 * time.Second

	maxAnswer = 64 << 10 // bytes that are read of a response's header, and of its body
	maxKept   = 1 << 10  // bytes of the body that an Attempt keeps

	// A healthy endpoint gets up to 32 messages at a time. Opening a connection costs both sides more than sending
	// a message, so idle connections are kept.
	idlePerHost = 32
	idleAll     = 256
	idleTimeout = 30 * time.Second
)

// Config configures a [Sender]. Timeout, Resolver and RootCAs are optional.
type Config struct {
	Policy  Policy
	Version string           // of the service, for User-Agent
	Clock   func() time.Time // such as time.Now

	Timeout  time.Duration  // of a whole attempt; 0: 15 seconds
	Resolver *net.Resolver  // nil: the system's resolver
	RootCAs  *x509.CertPool // nil: the system's certificates
}

// Sender makes attempts. Make it with [NewSender], and close it. It is safe for concurrent use. Callers bound the
// number of concurrent attempts.
type Sender struct {
	policy    Policy
	userAgent string
	clock     func() time.Time
	timeout   time.Duration
	secure    *http.Transport
	plain     *http.Transport // to this machine only
}

// NewSender returns a sender.
func NewSender(cfg Config) *Sender {
	if cfg.Timeout == 0 {
		cfg.Timeout = defaultTimeout
	}
	secure := cfg.dialer()
	secure.Control = cfg.Policy.filter().control
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

// transport returns a transport that does not trust receivers. It uses no proxy, not even the proxy of the
// environment, since a proxy would dial addresses that the policy can't check. It does not decompress responses,
// since a short response could become a long one.
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
			// These bound the unread bytes in memory.
			MaxReceiveBufferPerStream:     maxAnswer,
			MaxReceiveBufferPerConnection: 16 * maxAnswer,
			// These close a dead connection before the next message.
			SendPingTimeout:  cfg.Timeout,
			PingTimeout:      cfg.Timeout,
			WriteByteTimeout: cfg.Timeout,
		},
	}
}

// Close closes idle connections. Attempts in flight continue.
func (s *Sender) Close() {
	s.secure.CloseIdleConnections()
	s.plain.CloseIdleConnections()
}

// Message is the message of one attempt.
type Message struct {
	ID      string // the id of the event, without a dot; the same in every attempt
	URL     string // of the endpoint
	Body    []byte // JSON
	Secrets []Secret
}

// Send makes one attempt. A failed attempt is in the Attempt and is no error. Send returns the error of ctx if ctx
// ends before there is a response: then the outcome is unknown, and the attempt should not count.
func (s *Sender) Send(ctx context.Context, m Message) (Attempt, error) {
	if m.ID == "" || strings.Contains(m.ID, ".") || len(m.Secrets) == 0 {
		return Attempt{}, errors.New("a webhook message needs an id without a dot, and a secret")
	}
	begun := s.clock()
	attempt := Attempt{At: begun}
	span := beginTrace(ctx)
	defer func() { endTrace(span, &attempt) }()
	if problem := s.policy.CheckURL(m.URL); problem != "" {
		// The policy allowed the URL when the endpoint was made.
		attempt.fail(FailureURL, errors.New("the endpoint's URL "+problem))
		return attempt, nil
	}
	limited, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var seen progress
	request, err := s.request(seen.trackProgress(limited), m, begun)
	if err != nil {
		return Attempt{}, err
	}
	// An http.Client would follow redirects and keep cookies, and its errors quote the whole URL, which may contain a
	// secret of the receiver.
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
