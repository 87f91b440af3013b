package lab

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"licet/client"
	"licet/loadtest/rig"
	"licet/loadtest/stage"
)

// shop sells licenses, and its customers use them, until ctx ends.
type shop struct {
	balancer      *stage.Balancer
	desk, program *client.Client // with an API key, and without
	stranger      *client.Client // with an API key that does not exist
	// opening does what must succeed before the shop sells, so it tries again: nodes that have just started give leases
	// only once their clocks are compared, which takes long on a busy machine.
	opening   *client.Client
	browser   *stage.Browser
	receivers *receivers

	hot                         string // the license that many want at a time
	suspended, revoked, expired string

	mu     sync.Mutex
	faults int   // guarded by mu
	latest error // guarded by mu
}

const (
	product    = "editor"
	maxDevices = 2
	// hotClients is how many clients activate the hot license at a time, on each node.
	hotClients = 8
	// pause is the pause between two actions of one customer: the lab measures no speed, and the machine has other
	// work.
	pause = 20 * time.Millisecond
)

func openShop(ctx context.Context, s *stage.Stage, apiKey string) (*shop, error) {
	h := &shop{balancer: s.Balancer()}
	h.browser = stage.NewBrowser(h.balancer)
	for _, c := range []struct {
		into     **client.Client
		key      string
		retryFor time.Duration
	}{
		{&h.desk, apiKey, 0}, {&h.program, "", 0}, {&h.stranger, "lk_test_unknown", 0},
		{&h.opening, apiKey, time.Minute},
	} {
		var err error
		*c.into, err = client.New(stage.PublicURL, c.key, client.RetryFor(c.retryFor),
			client.WithHTTPClient(&http.Client{Transport: h.balancer, Timeout: 15 * time.Second}))
		if err != nil {
			return nil, err
		}
	}
	var err error
	if h.receivers, err = newReceivers(); err != nil {
		return nil, err
	}
	return h, h.stock(ctx)
}

// stock creates what the shop needs before it sells.
func (h *shop) stock(ctx context.Context) error {
	devices, none := maxDevices, 0
	if _, err := h.opening.Products.Put(ctx, product,
		client.ProductTerms{Name: "Editor", KeyPrefix: "EDIT", MaxDevices: &devices}); err != nil {
		return fmt.Errorf("describe the product: %w", err)
	}
	for _, url := range h.receivers.urls {
		if _, err := h.opening.Webhooks.Create(ctx, client.NewWebhook{URL: url}); err != nil {
			return fmt.Errorf("make an endpoint: %w", err)
		}
	}
	granted, err := h.opening.Licenses.Grant(ctx, client.Grant{ProductID: product, Quantity: 3, MaxDevices: &none})
	if err != nil {
		return fmt.Errorf("grant licenses: %w", err)
	}
	h.hot, h.suspended, h.revoked = granted[0].LicenseKey, granted[1].LicenseKey, granted[2].LicenseKey
	short, err := h.opening.Licenses.Grant(ctx,
		client.Grant{ProductID: product, Quantity: 1, ExpiresAt: time.Now().Add(2 * time.Second)})
	if err != nil {
		return fmt.Errorf("grant a license that ends: %w", err)
	}
	h.expired = short[0].LicenseKey
	if _, err := h.opening.Licenses.Suspend(ctx, h.suspended, "a test"); err != nil {
		return err
	}
	if _, err = h.opening.Licenses.Revoke(ctx, h.revoked, "a test"); err != nil {
		return err
	}
	return h.lease(ctx)
}

// lease makes a device take a lease of a floating license, for longer than the lab runs.
func (h *shop) lease(ctx context.Context) error {
	devices, floating := maxDevices, "render-farm"
	if _, err := h.opening.Products.Put(ctx, floating, client.ProductTerms{
		MaxDevices: &devices, DeviceMode: "leased", LeaseSeconds: int((24 * time.Hour).Seconds()),
	}); err != nil {
		return fmt.Errorf("describe a product with floating licenses: %w", err)
	}
	granted, err := h.opening.Licenses.Grant(ctx, client.Grant{ProductID: floating, Quantity: 1})
	if err != nil {
		return fmt.Errorf("grant a floating license: %w", err)
	}
	_, err = h.opening.Activate(ctx, client.Activation{LicenseKey: granted[0].LicenseKey, DeviceID: "laptop"})
	return err
}

// work starts all clients. They end with ctx.
func (h *shop) work(ctx context.Context, group *sync.WaitGroup) {
	forever := func(do func(context.Context, int) error) {
		group.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if err := do(ctx, i); err != nil && ctx.Err() == nil {
					h.fault(err)
				}
				rig.Rest(ctx, pause)
			}
		})
	}
	for range 2 {
		forever(h.customer)
	}
	for node := range nodes {
		for range hotClients {
			forever(func(ctx context.Context, i int) error {
				_, err := h.program.Activate(stage.Toward(ctx, node),
					client.Activation{LicenseKey: h.hot, DeviceID: fmt.Sprintf("%d-%d", node, i%4000)})
				return err
			})
		}
	}
	forever(h.refused)
	forever(h.lookups)
	forever(h.follower)
}

// customer makes an order, and pays, cancels or abandons it.
func (h *shop) customer(ctx context.Context, i int) error {
	o, err := h.desk.Orders.Create(ctx,
		client.NewOrder{ProductID: product, Amount: 4900, Currency: "USD", BuyerEmail: "ada@example.com"})
	if err != nil {
		return err
	}
	switch i % 8 {
	case 0:
		return nil // and never pays
	case 1:
		_, err := h.desk.Orders.Cancel(ctx, o.OrderNo, "not wanted any more")
		return err
	}
	if _, err := h.browser.Press(ctx, o.PayURL, "pay"); err != nil {
		return err
	}
	if o, err = h.desk.Orders.Get(ctx, o.OrderNo); err != nil {
		return err
	}
	for _, device := range []string{"laptop", "phone", "laptop"} {
		if _, err := h.program.Activate(ctx,
			client.Activation{LicenseKey: o.LicenseKey, DeviceID: device}); err != nil {
			return err
		}
	}
	if _, err := h.program.Activate(ctx,
		client.Activation{LicenseKey: o.LicenseKey, DeviceID: "desktop"}); !refusedWith(err, 40901) {
		return fmt.Errorf("a device too many: %w", err)
	}
	if _, err := h.program.Validate(ctx, client.Validation{LicenseKey: o.LicenseKey, DeviceID: "phone"}); err != nil {
		return err
	}
	if _, err := h.desk.Licenses.RemoveDevice(ctx, o.LicenseKey, "phone"); err != nil {
		return err
	}
	if i%8 == 2 {
		_, err = h.desk.Orders.Refund(ctx, o.OrderNo, "does not like it")
	}
	return err
}

// refused sends requests that must be refused.
func (h *shop) refused(ctx context.Context, i int) error {
	for _, c := range []struct {
		key  string
		code int
	}{{h.suspended, 40302}, {h.revoked, 40301}, {h.expired, 40303}} {
		_, err := h.program.Activate(ctx, client.Activation{LicenseKey: c.key, DeviceID: "laptop"})
		if c.key == h.expired && err == nil {
			continue // it has not ended yet
		}
		if !refusedWith(err, c.code) {
			return fmt.Errorf("an activation that is to be refused with %d: %w", c.code, err)
		}
	}
	// A mistyped license key. After some of them the service answers 42900 to the address.
	if _, err := h.program.Activate(ctx, client.Activation{LicenseKey: "EDIT-00000-00000-00000-00000-00000",
		DeviceID: "laptop"}); !refusedWith(err, 40001, 42900) {
		return fmt.Errorf("a mistyped license key: %w", err)
	}
	// An unknown API key. After many of them the service answers 42900 to the address.
	if _, err := h.stranger.Licenses.Get(ctx, h.hot); !refusedWith(err, 40100, 42900) {
		return fmt.Errorf("an unknown API key: %w", err)
	}
	return nil
}

// lookups reads what back offices read.
func (h *shop) lookups(ctx context.Context, _ int) error {
	if _, err := h.desk.Licenses.Get(ctx, h.hot); err != nil {
		return err
	}
	if _, err := h.desk.Licenses.ListDevices(ctx, h.hot, client.Page{}); err != nil {
		return err
	}
	if _, err := h.desk.Orders.List(ctx, client.OrderFilter{}, client.Page{}); err != nil {
		return err
	}
	_, err := h.desk.Webhooks.List(ctx, client.Page{})
	return err
}

// follower reads the feed, and waits for new events.
func (h *shop) follower(ctx context.Context, _ int) error {
	_, err := h.desk.Events.List(ctx, client.EventFilter{}, client.Page{}, time.Second)
	return err
}

func refusedWith(err error, codes ...int) bool {
	var refused *client.Error
	return errors.As(err, &refused) && slices.Contains(codes, refused.Code)
}

// fault records an unexpected answer. An answer of a busy machine is not unexpected.
func (h *shop) fault(err error) {
	var refused *client.Error
	if !errors.As(err, &refused) || refused.Code >= 50000 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.faults++
	h.latest = err
}

func (h *shop) trouble() (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.faults, h.latest
}

func (h *shop) close() {
	h.receivers.server.Close()
	h.balancer.CloseIdleConnections()
}
