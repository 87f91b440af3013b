package offline

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/client"
	"licet/receipt"
)

// TestConformanceAge measures for how long a client accepts a receipt that is void, if its network hides that: for less
// than revocation_max_age, and for as much longer as its clock is behind. LICET_DRIVER names the client, as in
// TestConformance.
func TestConformanceAge(t *testing.T) {
	const most = time.Minute // the least revocation_max_age
	clock := &laterClock{}
	service, api, keys := offer(t, clock, client.ProductTerms{Name: "Editor",
		MaxDevices: new(2), RevocationMaxAge: "PT1M"})
	network := &hiding{service: httputil.NewSingleHostReverseProxy(must[*url.URL](t)(url.Parse(service.URL)))}
	front := httptest.NewServer(network)
	t.Cleanup(front.Close)
	drive := driver(t)

	for _, way := range []string{"unreachable", "unchanged", "replayed", "refused", "served", "behind", "removed"} {
		most, behind := most, time.Duration(0)
		if way == "behind" { // the clock of the device, by almost the leeway
			behind = receipt.Leeway - 30*time.Second
			most += behind
		}
		grant := client.Grant{ProductID: product, Quantity: 1}
		key := must[[]client.License](t)(api.Licenses.Grant(t.Context(), grant))[0].LicenseKey
		device := call{URL: front.URL, Root: keys.Root, AccountID: keys.AccountID, ProductID: product,
			DeviceID: "laptop", State: filepath.Join(t.TempDir(), "state"), LicenseKey: key}
		// does returns the outcome of a call, and when the call began.
		does := func(what string) (outcome, time.Time) {
			c, began := device, clock.now()
			c.Do, c.Ahead = what, int((time.Duration(clock.ahead.Load())-behind)/time.Second)
			return drive(c), began
		}
		network.becomes("")
		if got, _ := does("activate"); got != good {
			t.Fatalf("%s: activate: %+v", way, got)
		}
		// The device has a new list, and an increment after it, when the receipt becomes void.
		for lists := network.answered(); network.answered() < lists+2; {
			clock.ahead.Add(int64(time.Second))
			if got, _ := does("refresh"); got != good {
				t.Fatalf("%s: before the receipt is void: %+v", way, got)
			}
		}
		if way == "removed" { // only the receipts of this device are void
			must[*client.Removal](t)(api.Licenses.RemoveDevice(t.Context(), key, device.DeviceID))
		} else {
			must[*client.License](t)(api.Licenses.Revoke(t.Context(), key, ""))
		}
		void := clock.now()
		network.becomes(way)
		longest := time.Duration(0)
		for age := time.Duration(0); age < 2*most; age = clock.now().Sub(void) {
			if got, began := does("refresh"); got.OK {
				longest = max(longest, began.Sub(void))
			}
			step := 3 * time.Second
			if age > most-8*time.Second && age < most+5*time.Second {
				step = time.Second
			}
			clock.ahead.Add(int64(step))
		}
		t.Logf("%s: a void receipt was accepted for %v", way, longest)
		if longest >= most {
			t.Errorf("%s: a void receipt was accepted for %v: not less than %v", way, longest, most)
		}
		// A list that says that the receipt is void, or an older one, ends the use of the receipt sooner.
		if least := most * 8 / 10; way != "served" && way != "removed" && way != "replayed" && longest < least {
			t.Errorf("%s: a void receipt was accepted for %v: the test measures nothing", way, longest)
		}
		network.becomes("")
		if got, _ := does("refresh"); got.OK {
			t.Errorf("%s: the void receipt is accepted once the service is reachable", way)
		}
	}
}

// hiding is a network that hides what the service says, or lets only lists of revocations through.
type hiding struct {
	service http.Handler

	mu    sync.Mutex
	way   string // empty: all goes through
	list  []byte // the last whole list that the service has sent
	lists int    // that the service has sent
}

// becomes changes what the network does.
func (h *hiding) becomes(way string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.way = way
}

func (h *hiding) answered() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lists
}

func (h *hiding) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	isList, isIncrement := strings.HasSuffix(r.URL.Path, "/revocations"), r.URL.RawQuery != ""
	switch {
	case h.way != "" && !isList, h.way == "unreachable", h.way == "behind", h.way == "refused" && !isIncrement:
		panic(http.ErrAbortHandler) // closes the connection
	case h.way == "unchanged": // whether or not the client has sent an ETag
		w.Header().Set("Cache-Control", "max-age=20")
		w.WriteHeader(http.StatusNotModified)
	case h.way == "replayed":
		w.Header().Set("Cache-Control", "max-age=20")
		_, _ = w.Write(h.list)
	case h.way == "refused":
		_, _ = io.WriteString(w, "e30.e30.e30")
	case !isList:
		h.service.ServeHTTP(w, r)
	default:
		h.relay(w, r, isIncrement)
	}
}

// relay lets an answer of the service with a list through, and keeps a whole list.
func (h *hiding) relay(w http.ResponseWriter, r *http.Request, isIncrement bool) {
	answer := httptest.NewRecorder()
	h.service.ServeHTTP(answer, r)
	if answer.Code == http.StatusOK {
		h.lists++
		if !isIncrement {
			h.list = answer.Body.Bytes()
		}
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes())
}
