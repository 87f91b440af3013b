package offline

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"licet/client"
	"licet/internal/servicetest"
	"licet/receipt"
)

// laterClock is a clock of service and device that tests move.
type laterClock struct{ ahead atomic.Int64 }

func (c *laterClock) now() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// cdn keeps documents for as long as their max-age says, as a cache between devices and the service does. It lets
// nothing else through.
type cdn struct {
	now  func() time.Time
	away atomic.Bool

	mu    sync.Mutex
	kept  map[string]keptAnswer
	asked int // of the service
}

type keptAnswer struct {
	response http.Response
	body     []byte
	until    time.Time
}

func (c *cdn) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.away.Load() || r.Method != http.MethodGet {
		return nil, errAway
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kept, is := c.kept[r.URL.String()]
	if !is || !c.now().Before(kept.until) {
		whole := r.Clone(r.Context())
		whole.Header.Del("If-None-Match")
		response, err := http.DefaultTransport.RoundTrip(whole)
		if err != nil {
			return nil, err
		}
		defer response.Body.Close()
		if kept.body, err = io.ReadAll(response.Body); err != nil {
			return nil, err
		}
		_, age, _ := strings.Cut(response.Header.Get("Cache-Control"), "max-age=")
		seconds, err := strconv.Atoi(age)
		if err != nil {
			return nil, err
		}
		kept.response, kept.until = *response, c.now().Add(time.Duration(seconds)*time.Second)
		c.kept[r.URL.String()] = kept
		c.asked++
	}
	answer := kept.response
	answer.Body = io.NopCloser(bytes.NewReader(kept.body))
	return &answer, nil
}

// forget drops all documents.
func (c *cdn) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}

// offer starts a service with a clock, and puts a product of a new account.
func offer(
	t *testing.T, clock *laterClock, terms client.ProductTerms,
) (service *servicetest.Service, api *client.Client, keys *client.ReceiptKeys) {
	t.Helper()
	service = servicetest.New(t, servicetest.Config{Clock: clock.now})
	key := must[string](t)(func() (string, error) {
		issued, err := service.Key(servicetest.NewAccount())
		return issued.Text, err
	}())
	api = must[*client.Client](t)(client.New(service.URL, key))
	t.Cleanup(api.CloseIdleConnections)
	must[*client.Product](t)(api.Products.Put(t.Context(), product, terms))
	return service, api, must[*client.ReceiptKeys](t)(api.Receipts.Keys(t.Context()))
}

// granted returns the key of a new license of the product.
func granted(t *testing.T, api *client.Client) string {
	t.Helper()
	grant := client.Grant{ProductID: product, Quantity: 1}
	return must[[]client.License](t)(api.Licenses.Grant(t.Context(), grant))[0].LicenseKey
}

// laptop returns the license of a new device whose clock is now.
func laptop(
	t *testing.T, service *servicetest.Service, keys *client.ReceiptKeys, now func() time.Time,
	options ...client.Option,
) *License {
	t.Helper()
	l := must[*License](t)(New(Config{URL: service.URL, Root: keys.Root, AccountID: keys.AccountID, Mode: keys.Mode,
		ProductID: product, DeviceID: "laptop", Store: &memory{}, Options: options}))
	l.now = now
	return l
}

// TestAgeOfRevocations measures for how long a program accepts a receipt that is void: for less than
// revocation_max_age, whatever voids the receipt, although the program reaches nothing but a cache of documents, and
// that not always, or no longer. While the receipt is good, the cache is enough for the program to go on.
func TestAgeOfRevocations(t *testing.T) {
	const most = time.Minute // the least revocation_max_age
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor",
		MaxDevices: new(2), SelfServiceDeactivation: true, RevocationMaxAge: "PT1M"})
	random := rand.New(rand.NewPCG(1, 2))
	cache := &cdn{now: clock.now, kept: map[string]keptAnswer{}}

	longest := time.Duration(0)
	for name, revoke := range map[string]func(licenseKey string) error{
		"suspended": func(key string) error { _, err := api.Licenses.Suspend(t.Context(), key, ""); return err },
		"revoked":   func(key string) error { _, err := api.Licenses.Revoke(t.Context(), key, ""); return err },
		"removed": func(key string) error {
			_, err := api.Licenses.RemoveDevice(t.Context(), key, "laptop")
			return err
		},
		"given back": func(key string) error {
			_, err := api.Deactivate(t.Context(), client.Deactivation{LicenseKey: key, DeviceID: "laptop"})
			return err
		},
		"fewer devices": func(key string) error {
			_, err := api.Licenses.Update(t.Context(), key, client.LicenseUpdate{MaxDevices: new(1)})
			return err
		},
		"reissued": func(key string) error {
			_, err := api.Licenses.Reissue(t.Context(), key, client.Reissue{})
			return err
		},
	} {
		for round := range 4 {
			licenseKey := granted(t, api)
			way := &switching{RoundTripper: http.DefaultTransport}
			l := laptop(t, service, keys, clock.now,
				client.RetryFor(0), client.WithHTTPClient(&http.Client{Transport: way}))
			must[*receipt.Receipt](t)(l.Activate(t.Context(), licenseKey, ""))
			way.RoundTripper = cache

			good := time.Duration(30+random.IntN(200)) * time.Second
			for at := clock.now(); clock.now().Sub(at) < good; {
				clock.ahead.Add(int64(time.Duration(500+random.IntN(4000)) * time.Millisecond))
				want(t, "before it is "+name, check(t, l), true, "")
			}
			if round == 0 { // the program has a new list when its network ends: so a void receipt counts for longest
				cache.forget()
				for asked := cache.asked; cache.asked == asked && !t.Failed(); {
					clock.ahead.Add(int64(time.Second))
					want(t, "before it is "+name, check(t, l), true, "")
				}
			}
			if err := revoke(licenseKey); err != nil {
				t.Fatal(name, err)
			}
			void := clock.now()
			for age := time.Duration(0); age < 3*most; age = clock.now().Sub(void) {
				cache.away.Store(round == 0 || random.IntN(3) == 0)
				if check(t, l).Allowed {
					longest = max(longest, clock.now().Sub(void))
				}
				step := time.Duration(500+random.IntN(4000)) * time.Millisecond
				if age > most-5*time.Second && age < most+2*time.Second { // around the bound, no check comes too late
					step = 50 * time.Millisecond
				}
				clock.ahead.Add(int64(step))
			}
			cache.away.Store(false)
		}
	}
	t.Logf("a void receipt was accepted for %v; the cache has asked the service %d times", longest, cache.asked)
	if longest >= most {
		t.Errorf("a void receipt was accepted for %v: not less than %v", longest, most)
	}
	if longest < most*9/10 { // without a network
		t.Errorf("a void receipt was accepted for %v at most: the test measures nothing", longest)
	}
}

// TestAgeWithClockBehind measures for how long a program whose clock is behind accepts a receipt that is void, without
// a network: for less than revocation_max_age and the time by which the clock is behind. If that time is more than the
// leeway, the program accepts no new receipt at all.
func TestAgeWithClockBehind(t *testing.T) {
	const most = time.Minute
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor",
		MaxDevices: new(2), RevocationMaxAge: "PT1M"})
	for _, behind := range []time.Duration{
		2 * time.Minute, receipt.Leeway - 10*time.Second, receipt.Leeway + 10*time.Second,
	} {
		licenseKey := granted(t, api)
		way := &switching{RoundTripper: http.DefaultTransport}
		l := laptop(t, service, keys, func() time.Time { return clock.now().Add(-behind) },
			client.RetryFor(0), client.WithHTTPClient(&http.Client{Transport: way}))
		_, err := l.Activate(t.Context(), licenseKey, "")
		if behind > receipt.Leeway {
			var refused *receipt.Error
			if !errors.As(err, &refused) || refused.Reason != receipt.NotYetValid || check(t, l).Allowed {
				t.Errorf("%v behind: %v, and allowed %v", behind, err, check(t, l).Allowed)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		must[*client.License](t)(api.Licenses.Suspend(t.Context(), licenseKey, ""))
		void := clock.now()
		way.RoundTripper = &cdn{now: clock.now} // lets nothing through
		way.RoundTripper.(*cdn).away.Store(true)
		longest := time.Duration(0)
		for age := time.Duration(0); age < 2*most+behind; age = clock.now().Sub(void) {
			if check(t, l).Allowed {
				longest = max(longest, clock.now().Sub(void))
			}
			clock.ahead.Add(int64(time.Second))
		}
		t.Logf("%v behind: a void receipt was accepted for %v", behind, longest)
		if longest >= most+behind || longest < most+behind-3*time.Second {
			t.Errorf("%v behind: a void receipt was accepted for %v, want a little less than %v",
				behind, longest, most+behind)
		}
	}
}

// TestAgeOfOverlap: a program with a key that a reissue has replaced runs until the overlap ends, also without a
// network and without a revocation_max_age. Then only a receipt for the new key counts.
func TestAgeOfOverlap(t *testing.T) {
	const overlap = time.Hour
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor", MaxDevices: new(2)})
	licenseKey := granted(t, api)
	ahead := &laterClock{} // of the device
	way := &switching{RoundTripper: http.DefaultTransport}
	l := laptop(t, service, keys, ahead.now, client.RetryFor(0), client.WithHTTPClient(&http.Client{Transport: way}))
	must[*receipt.Receipt](t)(l.Activate(t.Context(), licenseKey, ""))
	reissued := must[*client.License](t)(
		api.Licenses.Reissue(t.Context(), licenseKey, client.Reissue{Overlap: "PT1H"}))
	end := time.Now().Add(overlap)
	must[*receipt.Receipt](t)(l.Validate(t.Context()))

	net := way.RoundTripper
	way.RoundTripper = &cdn{now: ahead.now} // lets nothing through
	way.RoundTripper.(*cdn).away.Store(true)
	set := func(at time.Time) { ahead.ahead.Store(int64(time.Until(at))) }
	set(end.Add(-time.Minute))
	want(t, "in the overlap", check(t, l), true, "")
	set(end.Add(time.Second))
	want(t, "after the overlap", check(t, l), false, "expired")

	way.RoundTripper = net
	set(time.Now())
	must[*receipt.Receipt](t)(l.Activate(t.Context(), reissued.LicenseKey, ""))
	set(end.Add(-time.Minute)) // the receipt is renewed online after half of its validity, and else as it is
	want(t, "with the new key", check(t, l), true, "")
	way.RoundTripper = &cdn{now: ahead.now}
	way.RoundTripper.(*cdn).away.Store(true)
	set(end.Add(24 * time.Hour))
	want(t, "with the new key, after the overlap", check(t, l), true, "")
}

// switching is a way to the service that a test replaces.
type switching struct{ http.RoundTripper }

// memory is a store of a program.
type memory struct{ text []byte }

func (m *memory) Load() ([]byte, error) { return m.text, nil }

func (m *memory) Save(text []byte) error {
	m.text = bytes.Clone(text)
	return nil
}
