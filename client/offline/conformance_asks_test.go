package offline

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/client"
)

// TestConformanceAsks: a client asks for what docs/reference/receipts.md says, in this order, and for nothing else.
// LICET_DRIVER names the client, as in TestConformance.
func TestConformanceAsks(t *testing.T) {
	const day = 24 * time.Hour
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor", MaxDevices: new(1),
		RevocationMaxAge: "P1D"})
	for id, terms := range map[string]client.ProductTerms{"plain": {Name: "Plain"},
		"long": {Name: "Long", ReceiptValidity: "P90D"}} {
		must[*client.Product](t)(api.Products.Put(t.Context(), id, terms))
	}
	network := &noting{service: httputil.NewSingleHostReverseProxy(must[*url.URL](t)(url.Parse(service.URL)))}
	front := httptest.NewServer(network)
	t.Cleanup(front.Close)
	drive := driver(t)
	grace := 0 // of the program, in seconds
	newDevice := func(t *testing.T, product string) (call, func(what string, ok bool, want ...string)) {
		t.Helper()
		grant := client.Grant{ProductID: product, Quantity: 1}
		device := call{URL: front.URL, Root: keys.Root, AccountID: keys.AccountID, ProductID: product,
			DeviceID: "laptop", State: filepath.Join(t.TempDir(), "state"),
			LicenseKey: must[[]client.License](t)(api.Licenses.Grant(t.Context(), grant))[0].LicenseKey}
		does := func(what string, ok bool, want ...string) {
			t.Helper()
			c := device
			c.Do, c.Ahead, c.Grace = what, int(clock.ahead.Load()/int64(time.Second)), grace
			network.take()
			got := drive(c)
			if asked := network.take(); got.OK != ok || !slices.Equal(asked, want) {
				t.Errorf("%s: %+v after the requests %q, want ok %v after %q", what, got, asked, ok, want)
			}
		}
		does("activate", true, "activate", "jwks.json")
		does("refresh", true)
		return device, does
	}
	pass := func(d time.Duration) { clock.ahead.Add(int64(d)) }

	t.Run("a receipt", func(t *testing.T) {
		_, does := newDevice(t, "plain")
		pass(3 * day)
		does("refresh", true)
		pass(day)
		does("refresh", true, "validate")
		pass(4 * day)
		network.fails("validate")
		does("refresh", true, "validate")
		pass(4 * day)
		does("refresh", false, "validate")
		network.fails()
		does("refresh", true, "validate")
	})
	t.Run("a set of keys that ends before the receipt", func(t *testing.T) {
		_, does := newDevice(t, "long")
		pass(46 * day)
		does("refresh", true, "validate")
		network.fails("jwks.json")
		does("refresh", true, "jwks.json")
		network.fails()
		does("refresh", true, "jwks.json")
		does("refresh", true)
	})
	t.Run("a list", func(t *testing.T) {
		device, does := newDevice(t, product)
		pass(day/2 + time.Minute)
		does("refresh", true, "revocations")
		does("refresh", true)
		pass(day/2 + time.Minute)
		network.fails("revocations")
		does("refresh", true, "revocations")
		network.fails()
		must[*client.License](t)(api.Licenses.Suspend(t.Context(), device.LicenseKey, ""))
		pass(time.Minute)
		does("refresh", false, "revocations", "validate")
		does("refresh", false, "validate")
		must[*client.License](t)(api.Licenses.Reinstate(t.Context(), device.LicenseKey, ""))
		does("refresh", true, "validate")
	})
	t.Run("a list that is refused", func(t *testing.T) {
		_, does := newDevice(t, product)
		pass(day/2 + time.Minute)
		network.answers("revocations", "e30.e30.e30")
		does("refresh", true, "revocations", "revocations", "validate")
		network.answers("revocations", "")
	})
	t.Run("in the grace of the program", func(t *testing.T) {
		grace = int(5 * day / time.Second)
		defer func() { grace = 0 }()
		device, does := newDevice(t, product)
		pass(day + time.Minute)
		network.fails("revocations", "validate")
		does("refresh", true, "revocations", "validate")
		network.fails("revocations")
		does("refresh", true, "revocations", "validate")
		does("refresh", true)
		pass(4 * day)
		network.fails("revocations", "validate")
		does("refresh", true, "validate", "revocations")
		network.fails("validate")
		does("refresh", true, "validate", "revocations")
		does("refresh", true, "validate")
		network.fails()
		does("refresh", true, "validate")
		// A receipt that is void ends by the answer that comes.
		must[*client.License](t)(api.Licenses.Suspend(t.Context(), device.LicenseKey, ""))
		pass(day + time.Minute)
		network.fails("revocations")
		does("refresh", false, "revocations", "validate")
		must[*client.License](t)(api.Licenses.Reinstate(t.Context(), device.LicenseKey, ""))
		does("refresh", true, "validate")
		must[*client.License](t)(api.Licenses.Suspend(t.Context(), device.LicenseKey, ""))
		pass(4 * day)
		network.fails("validate")
		does("refresh", false, "validate", "revocations")
		network.fails()
	})
	t.Run("a list for a receipt that is too old", func(t *testing.T) {
		device, does := newDevice(t, product)
		for name, refuse := range map[string]func(){
			"no answer of the service": func() { network.fails("validate") },
			"an answer to another request": func() {
				old := receiptIn(t, stateOf(t, device))
				network.answers("validate", fmt.Sprintf(`{"code":0,"message":"success","data":{"valid":true,`+
					`"license_key":%q,"receipt":%q}}`, device.LicenseKey, old))
			},
			"an error": func() {
				network.answers("validate", `{"code":0,"message":"success","data":{"valid":true}}`)
			},
		} {
			pass(day + time.Minute)
			refuse()
			does("refresh", true, "validate", "revocations")
			network.fails("validate", "revocations")
			pass(day + time.Minute)
			does("refresh", false, "validate", "revocations")
			network.fails()
			network.answers("validate", "")
			if does("refresh", true, "validate"); t.Failed() {
				t.Fatal(name)
			}
		}
	})
}

// stateOf returns the state of a device as it stands in its file.
func stateOf(t *testing.T, device call) string {
	t.Helper()
	return (&listed{person: &person{device: device}}).read(t)
}

// noting is a network that notes what a client asks for, and may fail or answer for the service.
type noting struct {
	service http.Handler

	mu     sync.Mutex
	asked  []string          // the last segments of the paths
	failed []string          // whose requests get an answer that is not the service's
	other  map[string]string // answers in the place of the service's
}

// take returns what was asked for since the last take.
func (n *noting) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	asked := n.asked
	n.asked = nil
	return asked
}

func (n *noting) fails(paths ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.failed = paths
}

func (n *noting) answers(path, body string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.other == nil {
		n.other = map[string]string{}
	}
	n.other[path] = body
}

func (n *noting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	what := path.Base(r.URL.Path)
	n.mu.Lock()
	n.asked = append(n.asked, what)
	fails, other := slices.Contains(n.failed, what), n.other[what]
	n.mu.Unlock()
	switch {
	case fails:
		w.WriteHeader(http.StatusServiceUnavailable) // as a proxy that can't reach its service
	case other != "":
		_, _ = strings.NewReader(other).WriteTo(w)
	default:
		n.service.ServeHTTP(w, r)
	}
}
