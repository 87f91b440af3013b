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

// Client calls a service with one API key, or without one. It is safe for concurrent use. Goroutines should share
// a Client, and with it the connections.
//
// The methods of Client are for installed programs. The methods of its services are for shops, and need an API key, but
// for the methods of [ReceiptService] that make receipt files and release seats.
type Client struct {
	Account       *AccountService
	APIKeys       *APIKeyService
	Events        *EventService
	Licenses      *LicenseService
	Orders        *OrderService
	Products      *ProductService
	Receipts      *ReceiptService
	Redactions    *RedactionService
	Reports       *ReportService
	Rollouts      *RolloutService
	Sandbox       *SandboxService
	Subscriptions *SubscriptionService
	Webhooks      *WebhookService

	base      string // without a trailing slash
	apiKey    string
	signer    *signer // nil: the client does not sign requests
	http      *http.Client
	userAgent string
	retryFor  time.Duration
	onRetry   func(error, time.Duration) bool // nil: every retry is allowed

	now    func() time.Time
	newKey func() string // returns a unique Idempotency-Key
}

// Option configures a [Client].
type Option func(*Client)

// WithSigning makes the client sign each request with the API secret; see docs/guides/signing.md. keyID is the
// public id of the API key, key_….
func WithSigning(keyID, secret string) Option {
	return func(c *Client) { c.signer = &signer{keyID: keyID, secret: secret} }
}

// RetryFor bounds the time for retries of a request, counted from the first try. With 0 the client sends each
// request once. The default is 30 seconds.
func RetryFor(d time.Duration) Option { return func(c *Client) { c.retryFor = d } }

// WithHTTPClient makes the client send requests through h, for instance for a private certificate authority. The
// client never follows redirects, even if h would.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		own := *h
		c.http = &own
	}
}

// WithUserAgent puts the name and version of a program, such as shop/1.2, before the client's own name in the
// header User-Agent.
func WithUserAgent(program string) Option {
	return func(c *Client) { c.userAgent = program + " " + c.userAgent }
}

const defaultRetryFor = 30 * time.Second

// New returns a client of the service at an address, such as https://licenses.example.com. A client without an API
// key is for installed programs: the methods of [Client] work, and [ReceiptService.MakeFile],
// [ReceiptService.MakeFiles] and [ReceiptService.ReleaseSeat]. With an API key, these methods find only the licenses of
// the key's account and mode.
func New(address, apiKey string, options ...Option) (*Client, error) {
	base, err := parseBase(address)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("client: the API key has invalid characters")
	}
	c := &Client{
		base:      base,
		apiKey:    apiKey,
		http:      &http.Client{Transport: newTransport(), Timeout: requestTimeout},
		userAgent: userAgent(),
		retryFor:  defaultRetryFor,
		now:       time.Now,
		newKey:    rand.Text,
	}
	c.Account = &AccountService{c}
	c.APIKeys = &APIKeyService{c}
	c.Events = &EventService{c}
	c.Licenses = &LicenseService{c}
	c.Orders = &OrderService{c}
	c.Products = &ProductService{c}
	c.Receipts = &ReceiptService{c}
	c.Redactions = &RedactionService{c}
	c.Reports = &ReportService{c}
	c.Rollouts = &RolloutService{c}
	c.Sandbox = &SandboxService{c}
	c.Subscriptions = &SubscriptionService{c}
	c.Webhooks = &WebhookService{c}
	for _, option := range options {
		option(c)
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if c.signer != nil && (apiKey == "" || c.signer.keyID == "" || c.signer.secret == "") {
		return nil, errors.New("client: signing needs the API key, its id and its secret")
	}
	return c, nil
}

// CloseIdleConnections closes the connections that no request uses.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// parseBase returns an address in the form that signatures cover: scheme and host in lower case, without the
// default port of the scheme.
func parseBase(address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		u.User != nil || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		// The error does not quote the address, which may contain a password.
		return "", errors.New("client: the address of the service must be a URL such as https://licenses.example.com")
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == "" || u.Scheme == "http" && port == "80" || u.Scheme == "https" && port == "443" {
		host = strings.TrimSuffix(strings.TrimSuffix(host, port), ":")
	}
	return u.Scheme + "://" + host + strings.TrimRight(u.EscapedPath(), "/"), nil
}

const (
	// requestTimeout bounds a request with its response. A service works on a request for at most 4
	// seconds, on the test of a webhook endpoint for at most 15. The rest is for the network.
	requestTimeout = 20 * time.Second
	headerTimeout  = 18 * time.Second
	// idleTimeout is less than the 75 seconds after which a service closes an idle connection, so that
	// no request uses a connection that the service is closing.
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

// userAgent returns the name of this package with its version in the program.
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
