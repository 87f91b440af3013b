package stripe

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	sdk "github.com/stripe/stripe-go/v86"

	"licet/licensing"
	"licet/payment"
)

// Config contains what a provider is made from.
type Config struct {
	// Secrets are the secret key of the account at Stripe and the secrets of its webhook endpoint. They may change
	// while the provider is in use.
	Secrets func() Secrets
	Live    bool // the mode of the account and of its key
	// Client sends the requests; see [NewClient].
	Client *Client
	// Show returns what the buyer sees of an unpaid order. Repeated calls must return the same page for an order.
	Show func(ctx context.Context, order licensing.Order) (Page, error)
	// AutomaticTax lets Stripe add the tax to the amount of each order.
	AutomaticTax bool
	// SuspendOnDispute suspends the license while a buyer disputes its payment.
	SuspendOnDispute bool
	Clock            func() time.Time
}

// Page is what the buyer sees of an order.
type Page struct {
	URL     string // the pay page, to which Stripe sends the buyer back
	Product string // the name of the product
}

// Secrets are the secrets of one account at Stripe.
type Secrets struct {
	Key     string   // sk_… or rk_…
	Webhook []string // at most two signing secrets, whsec_…: during a rotation both are valid
}

// Validate returns an error that says what to do if the secrets can't be those of a live or a test account.
func (s Secrets) Validate(live bool) error {
	if err := ValidateKey(s.Key, live); err != nil {
		return err
	}
	if len(s.Webhook) > maxWebhookSecrets {
		return fmt.Errorf("there are %d webhook secrets: at most two are valid, the new one and the previous one",
			len(s.Webhook))
	}
	for _, secret := range s.Webhook {
		if !strings.HasPrefix(secret, "whsec_") || len(secret) < minSecret || !plain(secret) {
			return errors.New("a webhook secret is not in the form whsec_…: copy the signing secret of the endpoint " +
				"from Stripe's dashboard, or run licet payments connect stripe")
		}
	}
	return nil
}

const (
	maxWebhookSecrets = 2
	minSecret         = 16
	maxSecret         = 255
)

// ValidateKey returns an error that says what to do if a text can't be a secret key of a live or a test account.
func ValidateKey(key string, live bool) error {
	kind, rest, _ := strings.Cut(key, "_")
	mode, rest, _ := strings.Cut(rest, "_")
	want, other := "test", "live"
	if live {
		want, other = other, want
	}
	switch {
	case key == "":
		return errors.New("the secret key is empty: copy a restricted key (rk_" + want + "_…) or a secret key (sk_" +
			want + "_…) from Stripe's dashboard")
	case kind == "pk":
		return errors.New("this is a publishable key: copy a restricted key (rk_" + want + "_…) or a secret key (sk_" +
			want + "_…) from Stripe's dashboard")
	case kind != "sk" && kind != "rk", mode != want && mode != other, rest == "", len(key) > maxSecret, !plain(key):
		return errors.New("this is no secret key of Stripe: it must begin with rk_" + want + "_ or sk_" + want + "_")
	case mode != want:
		return errors.New("this is a " + mode + " key, but " + want + " mode needs a " + want +
			" key: it must begin with rk_" + want + "_ or sk_" + want + "_")
	}
	return nil
}

// plain reports whether a text consists of ASCII letters, digits and underscores.
func plain(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// ValidateBase returns an error if the base URL of Stripe's API can't be used. Without TLS it must be on this machine.
func ValidateBase(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || strings.Trim(u.Path, "/") != "":
		return errors.New("write a URL without a path, such as http://127.0.0.1:12111")
	case u.Scheme == "http" && u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1":
		return errors.New("write a URL that begins with https://: http:// is for this machine only, since each " +
			"request carries the secret key")
	}
	return nil
}

// Provider is Stripe, for one account and mode. It is safe for concurrent use.
type Provider struct {
	requests
	cfg Config
}

var _ payment.Provider = (*Provider)(nil)

// New returns a provider.
func New(cfg Config) *Provider {
	return &Provider{requests: requests{cfg.Client, cfg.Secrets}, cfg: cfg}
}

// Name implements [payment.Provider].
func (p *Provider) Name() licensing.PaymentProvider { return licensing.ProviderStripe }

// SuspendOnDispute implements [payment.Provider].
func (p *Provider) SuspendOnDispute() bool { return p.cfg.SuspendOnDispute }

// Verify asks Stripe whether the key is valid and may read checkouts. The error says what to do. refused is false if
// Stripe could not be asked: the key may be right.
func (p *Provider) Verify(ctx context.Context) (refused bool, err error) {
	params := &sdk.CheckoutSessionListParams{}
	params.Limit = sdk.Int64(1)
	_, err = p.sessions(ctx, params)
	cause := causeOf(err)
	return cause == causeKey || cause == causeForbidden, failed("check the secret key", err)
}
