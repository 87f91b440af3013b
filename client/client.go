package client

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strings"
	"time"
)

// Client calls one service with one API key, or with none. It may be used by
// many goroutines at once, and should be: they share its connections.
type Client struct {
	base      string // without a slash at its end
	apiKey    string
	signer    *signer // nil: requests are not signed
	http      *http.Client
	userAgent string
	retryFor  time.Duration
	onRetry   func(error, time.Duration) bool // nil: nobody is asked

	now    func() time.Time
	unique func() string // makes an Idempotency-Key
}

// Option changes how a [Client] works.
type Option func(*Client)

// WithSigning signs each request with the API secret, see docs/guides/signing.md. keyID
// is the public id of the API key, key_….
func WithSigning(keyID, secret string) Option {
	return func(c *Client) { c.signer = &signer{keyID: keyID, secret: secret} }
}

// RetryFor says for how long requests are sent again, counted from the first
// time each is sent. 0 sends each once. Without it: half a minute.
func RetryFor(d time.Duration) Option { return func(c *Client) { c.retryFor = d } }

// WithHTTPClient sends requests through another HTTP client, for instance for
// certificates of one's own. Redirects are not followed even if it would.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		own := *h
		c.http = &own
	}
}

// WithUserAgent puts the name and version of a program, such as shop/1.2, before
// the client's own in the header User-Agent.
func WithUserAgent(program string) Option {
	return func(c *Client) { c.userAgent = program + " " + c.userAgent }
}

const defaultRetryFor = 30 * time.Second

// New makes a client of the service at an address, such as
// https://licenses.example.com. Without an API key it is an end user's, and has
// only [Client.Activate], [Client.Validate] and [Client.Deactivate]; with one,
// these see the licenses of its account and mode alone.
func New(address, apiKey string, options ...Option) (*Client, error) {
	base, err := parseBase(address)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: the API key has characters that no API key has")
	}
	c := &Client{
		base:      base,
		apiKey:    apiKey,
		http:      &http.Client{Transport: newTransport(), Timeout: requestTimeout},
		userAgent: userAgent(),
		retryFor:  defaultRetryFor,
		now:       time.Now,
		unique:    rand.Text,
	}
	for _, option := range options {
		option(c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.signer != nil && (apiKey == "" || c.signer.keyID == "" || c.signer.secret == "") {
		return nil, errors.New("client: signing needs an API key, its id and its secret")
	}
	return c, nil
}

// CloseIdleConnections closes the connections that are kept for the next request.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// parseBase gives the address in the form that signatures are made for: scheme
// and host in lower case, without the scheme's own port.
func parseBase(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		// An address may hold a password, so it is not quoted.
		return "", errors.New("client: the service's address must be like https://licenses.example.com")
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

const (
	// requestTimeout is for one request with its answer. A service ends the work
	// on one within 4 seconds, but for a try of a webhook endpoint, which takes 15; the
	// rest is the network's.
	requestTimeout = 20 * time.Second
	headerTimeout  = 18 * time.Second
	// idleTimeout is less than the 75 seconds after which a service closes a
	// connection, so that no request meets its end.
	idleTimeout = 60 * time.Second
	connections = 64
)

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		TLSHandshakeTimeout:    5 * time.Second,
		ResponseHeaderTimeout:  headerTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           connections,
		MaxIdleConnsPerHost:    connections,
		MaxResponseHeaderBytes: 64 << 10,
		ForceAttemptHTTP2:      true,
	}
}

// userAgent names this package, with the version that the program was built with.
func userAgent() string {
	version := "dev"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range append(info.Deps, &info.Main) {
			if module.Path == "licet" && module.Version != "" && module.Version != "(devel)" {
				version = module.Version
			}
		}
	}
	return fmt.Sprintf("licet-go/%s", version)
}
