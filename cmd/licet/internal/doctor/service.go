package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/cli"
	"licet/kv/survey"
)

const (
	// serviceTimeout bounds one request to a service.
	serviceTimeout = 5 * time.Second
	// probes is how often the latency of a service is measured.
	probes = 5
	// A probe reads from the store, so it takes longer than an etcd get.
	slowProbe = 100 * time.Millisecond
	badProbe  = time.Second
	// maxProbeBody bounds the answer to a probe.
	maxProbeBody = 4 << 10
	// budgetShare is the share of the limit of an account, from which on the account is almost full.
	budgetShare = 0.8
)

// Service checks a service as its clients see it. It changes nothing.
func (r *Report) Service(ctx context.Context, t cli.Located, now time.Time) {
	if strings.HasPrefix(t.URL, "http://") && remote(t.URL) {
		r.add(Warning, "service TLS", "use https://: give licet serve --tls-cert, or put a proxy with TLS before it",
			"%s is without TLS: anyone on the network can read API keys", t.URL)
	}
	if !r.probe(ctx, t, now) {
		return
	}
	if t.APIKey == "" {
		r.add(Warning, "API key", "set LICET_API_KEY or --api-key-file, or save a profile (licet profile set --help)",
			"there is no API key for %s", t.URL)
		return
	}
	api, err := client.New(t.URL, t.APIKey, append(t.Options, client.RetryFor(0))...)
	if err != nil {
		r.Fail("API key", err, "correct "+t.URLFrom+" or "+t.KeyFrom)
		return
	}
	defer api.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, serviceTimeout)
	defer cancel()
	if r.key(ctx, api, t) {
		r.account(ctx, api)
	}
}

// probe probes a service, and reports whether it can be called.
func (r *Report) probe(ctx context.Context, t cli.Located, now time.Time) bool {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	caller := &http.Client{Transport: transport, Timeout: serviceTimeout}
	var took []time.Duration
	var clock survey.Clock
	for i := range probes + 1 {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(t.URL, "/")+"/readyz",
			http.NoBody)
		if err != nil {
			r.Fail("service", err, "write the URL in "+t.URLFrom+" like https://licenses.example.com")
			return false
		}
		sent := time.Now()
		response, err := caller.Do(request)
		if refused := (*tls.CertificateVerificationError)(nil); errors.As(err, &refused) {
			r.untrusted("service TLS", "the certificate of "+t.URL, "if your own authority has signed it, set "+
				"SSL_CERT_FILE to the certificate of the authority", refused, now)
			return false
		}
		if err != nil {
			r.Fail("service", err, "start the service, such as with licet dev, or correct "+t.URLFrom)
			return false
		}
		received := time.Now()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxProbeBody))
		_ = response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			r.add(Problem, "service", "read the log of the service; without this status from Licet, correct "+t.URLFrom,
				"%s is not ready: HTTP %d", t.URL, response.StatusCode)
			return false
		}
		if i == 0 { // the only connection
			if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
				clock = survey.Clock{Sent: sent, Received: received, Date: date}
			}
			r.ok("service", "%s (from %s) is ready", t.URL, t.URLFrom)
			r.space(string(body))
			if response.TLS != nil {
				r.certificates("service TLS", "the certificate", response.TLS.PeerCertificates, now)
			}
			continue
		}
		took = append(took, received.Sub(sent))
	}
	r.clock("service clock", "the clock of the service", clock)
	slices.Sort(took)
	r.latency("service latency", took, nil, slowProbe, badProbe)
	return true
}

// freeSpace is the advice about a store without room.
const freeSpace = "licet doctor --etcd-endpoints shows how full etcd is: run etcdctl compact and licet store " +
	"defragment, or raise etcd's --quota-backend-bytes: docs/runbooks/LicetStoreSpace.md"

// space checks what the probe says about the room in the store.
func (r *Report) space(probe string) {
	const check = "store space"
	switch {
	case strings.Contains(probe, `"store_space":"full"`):
		r.add(Problem, check, freeSpace,
			"the store is full: the service refuses changes")
	case strings.Contains(probe, `"store_space":"reserve"`):
		r.add(Warning, check, freeSpace,
			"the store is almost full: the service refuses new orders and licenses")
	default:
		r.ok(check, "enough")
	}
}

// key checks the API key, and reports whether calls with it may work.
func (r *Report) key(ctx context.Context, api *client.Client, t cli.Located) bool {
	const check = "API key"
	_, err := api.Orders.List(ctx, client.OrderFilter{}, client.Page{Limit: 1})
	switch {
	case err == nil, client.HasReason(err, client.ReasonForbidden): // valid, for other scopes
		if strings.HasPrefix(t.APIKey, "lk_test_") {
			r.ok(check, "valid, for test mode: no money moves, and licenses are for tests only")
			return true
		}
		r.ok(check, "valid, for live mode")
		return true
	case client.HasReason(err, client.ReasonUnauthenticated):
		r.add(Problem, check,
			"create another with licet keys create, or licet store keys create, and set it in "+t.KeyFrom,
			"the service refuses the API key from %s", t.KeyFrom)
	case client.HasReason(err, client.ReasonSignatureRequired), client.HasReason(err, client.ReasonInvalidSignature):
		r.add(Problem, check, "set LICET_API_KEY_ID and LICET_API_SECRET, or save them with licet profile set "+
			"--api-key-id, and call the public URL of the service: docs/guides/signing.md", "%v", err)
	default:
		r.Fail(check, err, "read the log of the service")
	}
	return false
}

// account checks the account, as far as the scopes of the API key allow.
func (r *Report) account(ctx context.Context, api *client.Client) {
	if usage, err := api.Account.Get(ctx); err == nil {
		r.payments(usage.PaymentProvider)
		share := max(part(usage.StoredBytes, usage.LimitBytes), part(usage.StoredKeys, usage.LimitKeys))
		if share >= budgetShare {
			r.add(Warning, "account budget", "delete data, or ask the operator for a larger budget: "+
				"--account-budget-bytes and --account-budget-keys", "%.0f %% of the limit is used", 100*share)
		} else {
			r.ok("account budget", "%.0f %% used", 100*share)
		}
	} else if !client.HasReason(err, client.ReasonForbidden) {
		r.Fail("account budget", err, "read the log of the service")
	}
	hooks, err := api.Webhooks.List(ctx, client.Page{})
	switch {
	case client.HasReason(err, client.ReasonForbidden):
	case err != nil:
		r.Fail("webhooks", err, "read the log of the service")
	default:
		r.webhooks(hooks.Items)
	}
	products, err := api.Products.List(ctx, client.Page{Limit: 1})
	switch {
	case client.HasReason(err, client.ReasonForbidden):
	case err != nil:
		r.Fail("products", err, "read the log of the service")
	case len(products.Items) == 0:
		r.add(Warning, "products",
			"create one with licet products put; in test mode, licet sandbox buy editor creates one",
			"there is no product yet")
	default:
		r.ok("products", "there are products")
	}
}

// payments checks the payment provider of the account; empty: there is none.
func (r *Report) payments(provider string) {
	const check = "payments"
	if provider == "" {
		r.add(Warning, check, "connect Stripe: docs/guides/stripe.md; or create orders with --payment-provider "+
			"outside, and record their payments yourself: docs/guides/payments.md",
			"no payment provider charges the orders of this account: orders have no pay page")
		return
	}
	r.ok(check, "%s charges the orders", provider)
}

// webhooks checks the endpoints.
func (r *Report) webhooks(hooks []client.Webhook) {
	bad := false
	for i := range hooks {
		if w := &hooks[i]; w.Status != "enabled" {
			bad = true
			r.add(Warning, "webhooks", "repair the receiver, test it with licet webhooks test "+w.ID+", and enable "+
				"it with licet webhooks update "+w.ID+" --enabled", "%s to %s is %s", w.ID, w.URL, w.Status)
		}
	}
	if !bad {
		r.ok("webhooks", "%d, none disabled", len(hooks))
	}
}

// part returns n as a share of a limit; 0 without a limit.
func part(n, limit int64) float64 {
	if limit <= 0 {
		return 0
	}
	return float64(n) / float64(limit)
}

var errNothing = errors.New("nothing names a service or a store")

// Nothing adds that there is neither a service nor a store to check.
func (r *Report) Nothing() {
	r.Fail("service", errNothing, "start one with licet dev, in this directory; or set --url, --etcd-endpoints or "+
		"--data-dir")
}
