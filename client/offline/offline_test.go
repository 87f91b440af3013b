package offline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"licet/client"
	"licet/internal/servicetest"
	"licet/node/service"
	"licet/receipt"
)

var svc *servicetest.Service

func TestMain(m *testing.M) { os.Exit(servicetest.Run(m, &svc)) }

const product = "editor"

// shop is an account that sells licenses for two devices, with receipts.
type shop struct {
	api  *client.Client
	keys *client.ReceiptKeys
}

func newShop(t *testing.T) *shop {
	t.Helper()
	key := must[service.IssuedKey](t)(svc.Key(servicetest.NewAccount()))
	api := must[*client.Client](t)(client.New(svc.URL, key.Text))
	t.Cleanup(api.CloseIdleConnections)
	must[*client.Product](t)(api.Products.Put(t.Context(), product, client.ProductTerms{Name: "Editor",
		MaxDevices: new(2), SelfServiceDeactivation: true, Entitlements: map[string]any{"pro": true},
		Trial: &client.TrialTerms{Validity: "P14D", Per: "device"}}))
	return &shop{api: api, keys: must[*client.ReceiptKeys](t)(api.Receipts.Keys(t.Context()))}
}

func (s *shop) license(t *testing.T) string {
	t.Helper()
	grant := client.Grant{ProductID: product, Quantity: 1}
	return must[[]client.License](t)(s.api.Licenses.Grant(t.Context(), grant))[0].LicenseKey
}

func must[T any](t *testing.T) func(T, error) T {
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// network carries the requests of a device, unless it is away.
type network struct {
	away     atomic.Bool
	requests atomic.Int32
}

var errAway = errors.New("there is no network")

func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.requests.Add(1)
	if n.away.Load() {
		return nil, errAway
	}
	return http.DefaultTransport.RoundTrip(r)
}

// device returns the license of a new device, with its network.
func (s *shop) device(t *testing.T, id string) (*License, *network) {
	t.Helper()
	n := &network{}
	l := must[*License](t)(New(Config{URL: svc.URL, Root: s.keys.Root, AccountID: s.keys.AccountID,
		Mode: s.keys.Mode, ProductID: product, DeviceID: id,
		Store:   FileStore(filepath.Join(t.TempDir(), "new", "license.json")),
		Options: []client.Option{client.RetryFor(0), client.WithHTTPClient(&http.Client{Transport: n})}}))
	return l, n
}

func check(t *testing.T, l *License) Check {
	t.Helper()
	return must[Check](t)(l.Check(t.Context()))
}

func want(t *testing.T, what string, c Check, allowed bool, reason string) {
	t.Helper()
	if c.Allowed != allowed || c.Reason != reason || allowed != (c.Receipt != nil) {
		t.Errorf("%s: %+v, want allowed %v, reason %q", what, c, allowed, reason)
	}
}

func TestWithoutNetwork(t *testing.T) {
	s := newShop(t)
	l, network := s.device(t, "laptop")
	want(t, "before the activation", check(t, l), false, notActivated)
	if n := network.requests.Load(); n != 0 {
		t.Errorf("%d requests without a license", n)
	}
	r := must[*receipt.Receipt](t)(l.Activate(t.Context(), s.license(t), "Laptop"))
	if string(r.Entitlements["pro"]) != "true" || r.DeviceID != "laptop" {
		t.Errorf("the receipt is %+v", r)
	}
	network.away.Store(true)
	before := network.requests.Load()
	want(t, "offline", check(t, l), true, "")
	if n := network.requests.Load() - before; n != 0 {
		t.Errorf("%d requests although nothing is due", n)
	}
	for _, c := range []struct {
		after  time.Duration
		reason string
	}{
		{6 * 24 * time.Hour, ""}, // past half of the receipt's time, the service is asked, in vain
		{8 * 24 * time.Hour, string(receipt.Expired)},
		{-time.Hour, string(receipt.NotYetValid)},
		{0, ""},
	} {
		l.now = func() time.Time { return time.Now().Add(c.after) }
		want(t, c.after.String(), check(t, l), c.reason == "", c.reason)
	}
	l.now = time.Now
	network.away.Store(false)
	must[*receipt.Receipt](t)(l.Validate(t.Context()))
}

func TestForeignState(t *testing.T) {
	s := newShop(t)
	l, _ := s.device(t, "one")
	must[*receipt.Receipt](t)(l.Activate(t.Context(), s.license(t), ""))
	text := must[[]byte](t)(l.cfg.Store.Load())
	other, network := s.device(t, "two")
	network.away.Store(true)
	if err := other.cfg.Store.Save(text); err != nil {
		t.Fatal(err)
	}
	want(t, "the state of another device", check(t, other), false, string(receipt.Device))
	for _, broken := range []string{"", "{", "[]", `{"license_key":1}`} {
		if err := other.cfg.Store.Save([]byte(broken)); err != nil {
			t.Fatal(err)
		}
		want(t, "the state "+broken, check(t, other), false, notActivated)
	}
}

func TestEndOfALicense(t *testing.T) {
	s := newShop(t)
	l, _ := s.device(t, "laptop")
	key := s.license(t)
	must[*receipt.Receipt](t)(l.Activate(t.Context(), key, ""))
	must[*client.License](t)(s.api.Licenses.Suspend(t.Context(), key, "chargeback"))
	_, err := l.Validate(t.Context())
	var no *NotValidError
	if !errors.As(err, &no) || no.Reason != client.ReasonLicenseSuspended {
		t.Errorf("a validation of a suspended license: %v", err)
	}
	want(t, "suspended", check(t, l), false, client.ReasonLicenseSuspended)
	must[*client.License](t)(s.api.Licenses.Reinstate(t.Context(), key, "paid"))
	want(t, "reinstated", check(t, l), true, "")
	if err := l.Deactivate(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, "after the deactivation", check(t, l), false, notActivated)
}

func TestTrial(t *testing.T) {
	s := newShop(t)
	l, network := s.device(t, "laptop")
	if r := must[*receipt.Receipt](t)(l.Trial(t.Context(), "")); !r.Trial {
		t.Errorf("the receipt is %+v", r)
	}
	network.away.Store(true)
	want(t, "offline", check(t, l), true, "")
}

func TestUnreachable(t *testing.T) {
	s := newShop(t)
	l, network := s.device(t, "laptop")
	network.away.Store(true)
	if _, err := l.Activate(t.Context(), s.license(t), ""); !errors.Is(err, errAway) {
		t.Errorf("an activation without network: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if c, err := l.Check(ctx); err != nil || c.Allowed {
		t.Errorf("a check after that: %+v, %v", c, err)
	}
}

func TestConfig(t *testing.T) {
	if _, err := New(Config{URL: svc.URL, Root: "licet_root_x"}); err == nil {
		t.Error("a root key of one character was taken")
	}
}

// TestAirGap: a request goes from a device without network to the service, a receipt file comes back, and a release
// frees the device slot.
func TestAirGap(t *testing.T) {
	s := newShop(t)
	key := s.license(t)
	l, network := s.device(t, "microscope")
	network.away.Store(true)
	if _, err := l.Import(""); !errors.Is(err, ErrNoRequest) {
		t.Errorf("a file without a request: %v", err)
	}
	earlier := must[string](t)(l.Request(key, "", nil))
	asked := must[string](t)(l.Request(key, "Microscope 7", nil))
	answer := func(request string) string {
		made := must[*client.ReceiptFile](t)(s.api.Receipts.MakeFile(t.Context(),
			client.DeviceRequest{Request: request}))
		return made.Text
	}
	var refused *receipt.Error
	before := answer(earlier)
	if _, err := l.Import(before); !errors.As(err, &refused) || refused.Reason != receipt.Nonce {
		t.Errorf("the file for an earlier request: %v", err)
	}
	file := answer(asked)
	if r := must[*receipt.Receipt](t)(l.Import(file)); r.DeviceKey == "" {
		t.Errorf("the receipt is %+v", r)
	}
	want(t, "with the file", check(t, l), true, "")
	if _, err := l.Import(file); !errors.Is(err, ErrNoRequest) {
		t.Errorf("the same file again: %v", err)
	}

	// A network does not cost the device its receipt: it has no license key to validate.
	network.away.Store(false)
	sent := network.requests.Load()
	l.now = func() time.Time { return time.Now().Add(6 * 24 * time.Hour) }
	want(t, "with a network, late in the receipt's life", check(t, l), true, "")
	l.now = time.Now
	var no *NotValidError
	if _, err := l.Validate(t.Context()); !errors.As(err, &no) || no.Reason != notActivated {
		t.Errorf("a validation of a receipt from a file: %v", err)
	}
	if err := l.Deactivate(t.Context()); !errors.As(err, &no) || no.Reason != notActivated {
		t.Errorf("a deactivation of a receipt from a file: %v", err)
	}
	if n := network.requests.Load() - sent; n != 0 {
		t.Errorf("%d requests for a receipt from a file", n)
	}
	want(t, "after that", check(t, l), true, "")

	release := must[string](t)(l.Release())
	want(t, "after the release", check(t, l), false, notActivated)
	if r := must[*client.Released](t)(s.api.Receipts.ReleaseSeat(t.Context(), release)); !r.Removed ||
		r.CurrentDevices != 0 {
		t.Errorf("the release is answered %+v", r)
	}
	again := must[string](t)(l.Release()) // the first one got lost
	if r := must[*client.Released](t)(s.api.Receipts.ReleaseSeat(t.Context(), again)); r.Removed {
		t.Errorf("another release is answered %+v", r)
	}
}

// TestReleaseOfOnlineReceipt: a release that the service would refuse does not cost the device its receipt.
func TestReleaseOfOnlineReceipt(t *testing.T) {
	s := newShop(t)
	key := s.license(t)
	l, _ := s.device(t, "laptop")
	must[string](t)(l.Request(key, "", nil))
	must[*receipt.Receipt](t)(l.Activate(t.Context(), key, ""))
	if _, err := l.Release(); !errors.Is(err, ErrNotFromRequest) {
		t.Errorf("a release of a receipt that answers no request: %v", err)
	}
	want(t, "after the release", check(t, l), true, "")
	if err := l.Deactivate(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestLongRelease: a release that would be too long for the service does not cost the device its receipt.
func TestLongRelease(t *testing.T) {
	s := newShop(t)
	many := make(map[string]any)
	for i := range 40 {
		many[fmt.Sprintf("feature-%d", i)] = strings.Repeat("x", 200)
	}
	must[*client.Product](t)(s.api.Products.Put(t.Context(), product, client.ProductTerms{Name: "Editor",
		SelfServiceDeactivation: true, Entitlements: many}))
	l, _ := s.device(t, "microscope")
	asked := must[string](t)(l.Request(s.license(t), "", nil))
	file := must[*client.ReceiptFile](t)(s.api.Receipts.MakeFile(t.Context(), client.DeviceRequest{Request: asked}))
	must[*receipt.Receipt](t)(l.Import(file.Text))
	if _, err := l.Release(); !errors.Is(err, receipt.ErrLongRelease) {
		t.Errorf("a long release: %v", err)
	}
	want(t, "after the release", check(t, l), true, "")
}
