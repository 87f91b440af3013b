package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/pflag"

	"licet/handlers"
	"licet/licensing"
	"licet/metrics/guard"
	"licet/node/service"
	"licet/payment"
	"licet/payment/stripe"
)

// paymentsConfig has the settings of payment providers. The flags are for a service whose accounts share one account
// at Stripe. The file has the providers of accounts that have their own.
type paymentsConfig struct {
	File             string
	StripeBase       string
	StripeTest       stripeAccount
	StripeLive       stripeAccount
	AutomaticTax     bool
	SuspendOnDispute bool
}

// stripeAccount is an account at Stripe in one mode.
type stripeAccount struct {
	Provider         string `json:"provider"` // of a file only: stripe, or sandbox in test mode
	KeyFile          string `json:"key_file"`
	WebhookFile      string `json:"webhook_secrets_file"`
	AutomaticTax     bool   `json:"automatic_tax"`
	SuspendOnDispute bool   `json:"suspend_on_dispute"`
}

// paymentsFile is the content of --payments-file.
type paymentsFile struct {
	Accounts map[string]struct {
		Test *stripeAccount `json:"test"`
		Live *stripeAccount `json:"live"`
	} `json:"accounts"`
}

func (c *paymentsConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.StripeLive.KeyFile, "stripe-live-key-file", "",
		"`file` with the secret key (rk_live_… or sk_live_…) of Stripe for live orders; you may replace the file at "+
			"any time")
	fs.StringVar(&c.StripeLive.WebhookFile, "stripe-live-webhook-secrets-file", "",
		"`file` with the signing secret of the live webhook endpoint at Stripe; during a rotation, with both secrets, "+
			"one a line")
	fs.StringVar(&c.StripeTest.KeyFile, "stripe-test-key-file", "",
		"`file` with the secret key (rk_test_… or sk_test_…) of Stripe for test orders (default: the sandbox)")
	fs.StringVar(&c.StripeTest.WebhookFile, "stripe-test-webhook-secrets-file", "",
		"`file` with the signing secret of the test webhook endpoint at Stripe; during a rotation, with both secrets, "+
			"one a line")
	fs.BoolVar(&c.AutomaticTax, "stripe-automatic-tax", false,
		"let Stripe add the tax to the amount of each order; needs Stripe Tax")
	fs.BoolVar(&c.SuspendOnDispute, "stripe-suspend-on-dispute", false,
		"suspend the license while a buyer disputes its payment")
	fs.StringVar(&c.File, "payments-file", "",
		"JSON `file` with the payment providers of accounts that have their own; see Payment providers")
	fs.StringVar(&c.StripeBase, "stripe-api-base", stripe.DefaultBase,
		"`URL` of Stripe's API, or of a stand-in for tests")
}

func (c *paymentsConfig) validate() error {
	if err := stripe.ValidateBase(c.StripeBase); err != nil {
		return badUsage("--stripe-api-base is %q: %w", c.StripeBase, err)
	}
	for mode, a := range map[string]stripeAccount{"test": c.StripeTest, "live": c.StripeLive} {
		if a.WebhookFile != "" && a.KeyFile == "" {
			return badUsage("--stripe-%s-webhook-secrets-file needs --stripe-%s-key-file: set both", mode, mode)
		}
	}
	return nil
}

// stripeShared is what all providers of Stripe share. show is set before the first order is paid.
type stripeShared struct {
	client *stripe.Client
	show   func(context.Context, licensing.Order) (stripe.Page, error)
}

// usePayments makes the providers of the configuration. It fails if a key can't be right, or if Stripe refuses it. If
// Stripe can't be reached, a line in the log says so: then no order can be paid, but licenses work.
func (s *instance) usePayments(ctx context.Context) error {
	c := &s.cfg.paymentsConfig
	s.stripe = &stripeShared{client: stripe.NewClient(c.StripeBase)}
	own, err := s.ownProviders()
	if err != nil {
		return err
	}
	shared := map[licensing.Mode]*stripe.Provider{}
	for mode, a := range map[licensing.Mode]stripeAccount{licensing.Test: c.StripeTest, licensing.Live: c.StripeLive} {
		if a.KeyFile == "" {
			continue
		}
		a.AutomaticTax, a.SuspendOnDispute = c.AutomaticTax, c.SuspendOnDispute
		if shared[mode], err = s.newStripe(a, mode); err != nil {
			return fmt.Errorf("--stripe-%s-key-file or --stripe-%s-webhook-secrets-file: %w", mode, mode, err)
		}
	}
	if err := s.verifyStripe(ctx, own, shared); err != nil {
		return err
	}
	s.events = eventSources(own, shared)
	others := s.providers
	s.providers = func(owner licensing.Owner) payment.Provider {
		if p, found := own[owner]; found {
			return p
		}
		if p := shared[owner.Mode]; p != nil {
			return p
		}
		return others.Of(owner)
	}
	return nil
}

// eventSources returns the accounts at Stripe.
func eventSources(
	own map[licensing.Owner]payment.Provider, shared map[licensing.Mode]*stripe.Provider,
) (sources []payment.EventSource) {
	for owner, p := range own {
		if p.Name() == licensing.ProviderStripe {
			sources = append(sources, payment.EventSource{Owner: owner})
		}
	}
	for mode := range shared {
		sources = append(sources, payment.EventSource{Owner: licensing.Owner{Mode: mode},
			Shared: func(owner licensing.Owner) bool {
				_, has := own[owner]
				return owner.Mode == mode && !has
			}})
	}
	return sources
}

// ownProviders returns the providers of --payments-file.
func (s *instance) ownProviders() (map[licensing.Owner]payment.Provider, error) {
	name := s.cfg.File
	own := map[licensing.Owner]payment.Provider{}
	if name == "" {
		return own, nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("--payments-file: %w", err)
	}
	var file paymentsFile
	if err := json.Unmarshal(text, &file, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("--payments-file: %s is not in the form that the page Configuration describes: %w", name,
			err)
	}
	for id, account := range file.Accounts {
		if !licensing.ValidAccountID(id) {
			return nil, fmt.Errorf("--payments-file: accounts has the member %q: write the id of an account, such as "+
				"acct_acme", id)
		}
		for mode, a := range map[licensing.Mode]*stripeAccount{
			licensing.Test: account.Test, licensing.Live: account.Live,
		} {
			if a == nil {
				continue
			}
			owner := licensing.Owner{AccountID: id, Mode: mode}
			if own[owner], err = s.ownProvider(*a, mode, filepath.Dir(name)); err != nil {
				return nil, fmt.Errorf("--payments-file: accounts.%s.%s: %w", id, mode, err)
			}
		}
	}
	return own, nil
}

// ownProvider returns the provider of an account in --payments-file, whose paths are relative to its folder.
func (s *instance) ownProvider(a stripeAccount, mode licensing.Mode, folder string) (payment.Provider, error) {
	for _, path := range []*string{&a.KeyFile, &a.WebhookFile} {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(folder, *path)
		}
	}
	switch {
	case a.Provider == string(licensing.ProviderSandbox) && mode == licensing.Test:
		if a != (stripeAccount{Provider: a.Provider}) {
			return nil, errors.New("leave out all members but provider: the sandbox has no settings")
		}
		return s.sandbox, nil
	case a.Provider != string(licensing.ProviderStripe):
		return nil, fmt.Errorf("provider is %q: write stripe, or in test mode sandbox", a.Provider)
	case a.KeyFile == "":
		return nil, errors.New("key_file is missing: write the path of a file with the secret key of Stripe")
	}
	return s.newStripe(a, mode)
}

func (s *instance) newStripe(a stripeAccount, mode licensing.Mode) (*stripe.Provider, error) {
	secrets, err := loadStripeSecrets(a.KeyFile, a.WebhookFile, mode == licensing.Live, s.log)
	if err != nil {
		return nil, err
	}
	if a.WebhookFile == "" {
		s.log.Warn().Str("key_file", a.KeyFile).Msg("without webhook secrets, Stripe can't report payments: the " +
			"service finds out within an hour")
	}
	return stripe.New(stripe.Config{
		Secrets: secrets.get, Live: mode == licensing.Live, Client: s.stripe.client, Clock: time.Now,
		Show: func(ctx context.Context, order licensing.Order) (stripe.Page, error) {
			return s.stripe.show(ctx, order)
		},
		AutomaticTax: a.AutomaticTax, SuspendOnDispute: a.SuspendOnDispute,
	}), nil
}

const (
	// verifyTimeout bounds the question to Stripe about one secret key, and verifyAllTimeout the questions about all.
	verifyTimeout    = 10 * time.Second
	verifyAllTimeout = 30 * time.Second
	// verifyAtOnce bounds the questions under way.
	verifyAtOnce = 16
)

// verifyStripe asks Stripe about all secret keys, some at the same time: a slow answer about one key does not keep the
// service from asking about the others. The first shared key that Stripe refuses ends the other questions. If Stripe
// refuses the key of one account, a line in the log says so: an account that withdraws its key at Stripe must not keep
// the nodes of all accounts from starting.
func (s *instance) verifyStripe(
	ctx context.Context, own map[licensing.Owner]payment.Provider, shared map[licensing.Mode]*stripe.Provider,
) error {
	ctx, cancel := context.WithTimeout(ctx, verifyAllTimeout)
	defer cancel()
	type key struct {
		*stripe.Provider
		shared bool
	}
	all := map[string]key{}
	for mode, p := range shared {
		all[string(mode)+" mode"] = key{p, true}
	}
	for owner, p := range own {
		if p, is := p.(*stripe.Provider); is {
			all[owner.AccountID+" in "+string(owner.Mode)+" mode"] = key{p, false}
		}
	}
	names := slices.Sorted(maps.Keys(all))
	wrong := make([]error, len(names))
	places := make(chan struct{}, verifyAtOnce)
	var asking sync.WaitGroup
	start := guard.New(nil, s.log) // the service has no metrics yet
	for i, of := range names {
		places <- struct{}{}
		start.StartIn(&asking, "verification of a secret key", func() {
			defer func() { <-places }()
			switch err := s.verifyKey(ctx, of, all[of].Provider); {
			case err == nil:
			case all[of].shared:
				wrong[i] = err
				cancel()
			default:
				s.log.Error().Err(err).Msg("the account can't be paid until Stripe accepts its key")
			}
		})
	}
	asking.Wait()
	return errors.Join(wrong...)
}

// verifyKey asks Stripe about the secret key of a provider. It returns nil if Stripe can't be asked, or if ctx is
// canceled before Stripe answers.
func (s *instance) verifyKey(ctx context.Context, of string, p *stripe.Provider) error {
	ctx, cancel := context.WithTimeout(ctx, verifyTimeout)
	defer cancel()
	refused, err := p.Verify(ctx)
	switch {
	case refused:
		return fmt.Errorf("the secret key of Stripe for %s: %w; copy a valid key from Stripe's dashboard, or give "+
			"the key the missing permission", of, err)
	case err != nil && !errors.Is(ctx.Err(), context.Canceled):
		s.log.Warn().Err(err).Str("of", of).Msg("Stripe could not be asked whether the secret key is valid")
	}
	return nil
}

// accepts returns why no provider can charge an order, before the order is created.
func (s *instance) accepts(order licensing.Order) error {
	provider := s.providers.Of(order.Owner)
	if provider == nil {
		return licensing.ErrNoLivePayments
	}
	return provider.Accepts(order)
}

// showOrders tells the providers of Stripe what buyers see.
func (s *instance) showOrders(n *service.Service, publicURL string) {
	s.stripe.show = func(ctx context.Context, order licensing.Order) (stripe.Page, error) {
		link, err := handlers.PayURL(publicURL, s.ring, &order)
		if err != nil {
			return stripe.Page{}, err
		}
		product, err := n.Product(ctx, order.Owner, order.ProductID)
		if err != nil && licensing.ReasonOf(err) != licensing.ReasonProductNotFound {
			return stripe.Page{}, err
		}
		return stripe.Page{URL: link, Product: cmp.Or(product.Name, order.ProductID)}, nil
	}
}
