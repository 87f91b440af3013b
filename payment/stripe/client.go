package stripe

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	sdk "github.com/stripe/stripe-go/v86"
	"github.com/stripe/stripe-go/v86/form"
)

// DefaultBase is the base URL of Stripe's API.
const DefaultBase = sdk.APIURL

const (
	// requestTimeout bounds one request. A request of a buyer has a shorter deadline.
	requestTimeout = 20 * time.Second
	// maxResponse bounds a response. A page of 100 Checkout Sessions is smaller.
	maxResponse = 4 << 20
	// maxConnections bounds the connections of a node to Stripe; see payment.Fairly, which has as many places. Stripe
	// allows about 100 requests a second in live mode.
	maxConnections = 64
)

// Client sends requests to Stripe. All providers of a process share it.
type Client struct{ backend sdk.Backend }

// NewClient returns a client for a base URL, which must be valid; see [ValidateBase].
func NewClient(base string) *Client {
	transport := &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: requestTimeout,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   maxConnections,
		MaxConnsPerHost:       maxConnections,
		ForceAttemptHTTP2:     true,
	}
	return &Client{backend: sdk.GetBackendWithConfig(sdk.APIBackend, &sdk.BackendConfig{
		URL: sdk.String(base),
		HTTPClient: &http.Client{
			Transport: bounded{transport},
			Timeout:   requestTimeout,
			// Stripe redirects no request of its API, and the key must not go elsewhere.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		// The desk decides when to try again. A retry of the SDK would use the same idempotency key, for which Stripe
		// repeats an error.
		MaxNetworkRetries: sdk.Int64(0),
		EnableTelemetry:   sdk.Bool(false),
		LeveledLogger:     &sdk.LeveledLogger{Level: sdk.LevelNull}, // its lines contain texts of requests
	})}
}

// bounded bounds the responses of a transport, and sends nothing about the process.
type bounded struct{ http.RoundTripper }

func (b bounded) RoundTrip(request *http.Request) (*http.Response, error) {
	// Telemetry is off. These headers of the SDK would still tell the version of Go and who has started the process.
	request.Header.Del("X-Stripe-Client-User-Agent")
	request.Header.Set("User-Agent", "licet")
	response, err := b.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, left: maxResponse}
	}
	return response, err
}

var errTooLong = errors.New("the response is too long")

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(to []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLong
	}
	n, err := b.ReadCloser.Read(to)
	b.left -= int64(n)
	return n, err
}

// requests sends requests to Stripe with the secret key of one account. The SDK's function Call takes its parameters as
// an interface that all its types of parameters implement.
type requests struct {
	client  *Client
	secrets func() Secrets
}

// get reads an object.
func (r *requests) get(
	ctx context.Context, path string, params sdk.ParamsContainer, into sdk.LastResponseSetter, expand ...string,
) error {
	params.GetParams().Context = ctx
	for _, field := range expand {
		params.GetParams().AddExpand(field)
	}
	return r.client.backend.Call(http.MethodGet, path, r.secrets().Key, params, into)
}

// post makes or changes an object, once for each idempotency key. Without a key, a repeated call repeats the change.
func (r *requests) post(
	ctx context.Context, path, key string, params sdk.ParamsContainer, into sdk.LastResponseSetter,
) error {
	params.GetParams().Context = ctx
	if key != "" {
		params.GetParams().SetIdempotencyKey(key)
	}
	return r.client.backend.Call(http.MethodPost, path, r.secrets().Key, params, into)
}

// list reads one page of a list. The caller sets the filters and the limit.
func (r *requests) list(
	ctx context.Context, path string, params sdk.ListParamsContainer, into sdk.LastResponseSetter,
) error {
	params.GetListParams().Context = ctx
	query := &form.Values{}
	form.AppendTo(query, params)
	return r.client.backend.CallRaw(http.MethodGet, path, r.secrets().Key, []byte(query.Encode()),
		params.GetListParams().ToParams(), into)
}

// remove deletes an object.
func (r *requests) remove(
	ctx context.Context, path string, params sdk.ParamsContainer, into sdk.LastResponseSetter,
) error {
	params.GetParams().Context = ctx
	return r.client.backend.Call(http.MethodDelete, path, r.secrets().Key, params, into)
}
