package handlers_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"licet/handlers"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// countingStore counts the requests about records, and panics on a request about the poisoned one.
type countingStore struct {
	store.Store
	calls  atomic.Int64
	poison atomic.Value // a licensing.Ref
}

func counting(w *countingStore) option {
	return func(_ *handlers.Config, c *service.Config) {
		w.Store = c.Records.(store.Store)
		c.Records, c.Queries, c.Keys, c.Sweeps, c.Events = w, w, w, w, w
	}
}

func (w *countingStore) Load(ctx context.Context, wants ...store.Want) ([]store.Snapshot, error) {
	w.calls.Add(1)
	for _, want := range wants {
		if want.Ref == w.poison.Load() {
			panic("poisoned")
		}
	}
	return w.Store.Load(ctx, wants...)
}

func (w *countingStore) Commit(ctx context.Context, change store.Change) (store.Outcome, error) {
	w.calls.Add(1)
	return w.Store.Commit(ctx, change)
}

func (w *countingStore) ReadLicense(
	ctx context.Context, key licensing.LicenseKey, page store.DevicePage,
) (*store.LicenseView, error) {
	w.calls.Add(1)
	if licensing.LicenseRef(key) == w.poison.Load() {
		panic("poisoned")
	}
	return w.Store.ReadLicense(ctx, key, page)
}

func (w *countingStore) OrderOwner(ctx context.Context, orderNo string) (licensing.Owner, bool, error) {
	w.calls.Add(1)
	return w.Store.OrderOwner(ctx, orderNo)
}

// A panic in a handler or in the mailbox of a license fails only its own request. It does not affect requests for other
// licenses, requests on the same connection, and later requests for the same license.
func TestPanicFailsOneRequest(t *testing.T) {
	t.Parallel()
	store := &countingStore{}
	s := newService(t, counting(store))
	bad := s.license()
	good := make([]string, 16)
	for i := range good {
		good[i] = s.license()
	}
	store.poison.Store(licensing.LicenseRef(parsedKey(bad)))

	var clients sync.WaitGroup
	for i, key := range good {
		clients.Go(func() {
			if a := s.activate(bad, fmt.Sprint(i)); a.code != 50000 {
				t.Errorf("activation that panics: %s", a.body)
			}
			if a := s.activate(key, "d"); a.code != 0 {
				t.Errorf("activation of another license: %s", a.body)
			}
			if a := s.send("GET", "/v1/licenses/"+bad, keyAll, ""); a.code != 50000 {
				t.Errorf("lookup that panics: %s", a.body)
			}
			if a := s.send("GET", "/v1/licenses/"+key, keyAll, ""); a.code != 0 || a.data["current_devices"] != 1.0 {
				t.Errorf("lookup of another license: %s", a.body)
			}
		})
	}
	clients.Wait()

	request := func(key string) string {
		body := `{"license_key":"` + key + `","device_id":"d"}`
		return post(fmt.Sprintf("Content-Length: %d\r\n", len(body))) + body
	}
	answers, closed := s.exchangeKept(request(bad) + request(good[0]) + request(bad) + smuggled)
	if len(answers) != 4 || closed {
		t.Fatalf("%d answers, closed: %v\n%v", len(answers), closed, answers)
	}
	for i, code := range []int{50000, 0, 50000, 0} {
		answers[i].must(t, code)
	}

	store.poison.Store(licensing.Ref{})
	s.activate(bad, "d").must(t, 0)
	if a := s.send("GET", "/v1/licenses/"+bad, keyAll, "").must(t, 0); a.data["current_devices"] != 1.0 {
		t.Errorf("an activation that panicked has left a lock or a device: %s", a.body)
	}
}

// Every route with a JSON body refuses invalid JSON before it calls the store. The connection stays usable.
func TestBadJSONNeverReachesTheStore(t *testing.T) {
	t.Parallel()
	store := &countingStore{}
	s := newService(t, counting(store))
	key := s.license()
	routes := []struct{ path, member, escaped, rest string }{
		{"/v1/licenses/activate", `"device_id":"d"`, `"device_\u0069d":"d"`, `,"license_key":"` + key + `"`},
		{"/v1/orders", `"product_id":"editor"`, `"product_\u0069d":"editor"`, `,"amount":0,"currency":"USD"`},
		{"/v1/licenses", `"product_id":"editor"`, `"product_\u0069d":"editor"`, `,"quantity":1`},
	}
	before := store.calls.Load()
	for _, route := range routes {
		path, open := route.path, "{"+route.member+route.rest
		body := open + "}"
		bad := map[string]string{
			"empty": "", "blank": " ", "no object": "[" + body + "]", "text": `"x"`, "null": "null", "number": "1",
			"twice": body + body, "something after": body + " x", "NUL after": body + "\x00",
			"NUL before":          "\x00" + body,
			"NUL in a name":       open + `,"` + "\x00" + `":1}`,
			"NUL in a value":      open + `,"x":"` + "\x00" + `"}`,
			"NUL between":         open + "\x00}",
			"byte order mark":     "\ufeff" + body,
			"UTF-16":              strings.Join(strings.Split(body, ""), "\x00"),
			"bad byte":            open + `,"x":"` + "\xff" + `"}`,
			"overlong":            open + `,"x":"` + "\xc0\x80" + `"}`,
			"surrogate in UTF-8":  open + `,"x":"` + "\xed\xa0\x80" + `"}`,
			"cut code point":      open + `,"x":"` + "\xe2\x82" + `"}`,
			"lone surrogate":      open + `,"x":"\ud800"}`,
			"duplicate member":    open + "," + route.member + "}",
			"duplicate, escaped":  open + "," + route.escaped + "}",
			"duplicate, unknown":  open + `,"x":1,"x":1}`,
			"duplicate, deep":     open + `,"x":{"y":[{"z":1,"z":2}]}}`,
			"deep array":          open + `,"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + "}",
			"deep object":         open + `,"x":` + strings.Repeat(`{"y":`, 40) + "1" + strings.Repeat("}", 40) + "}",
			"deep, without end":   open + `,"x":` + strings.Repeat("[", 15<<10),
			"deep, nothing else":  strings.Repeat("[", 16<<10),
			"deep, objects":       strings.Repeat(`{"a":`, 3<<10),
			"long string, no end": open + `,"x":"` + strings.Repeat("x", 15<<10),
			"long number, no end": open + `,"x":` + strings.Repeat("9", 15<<10),
			"backslashes":         open + `,"x":"` + strings.Repeat(`\`, 15<<10),
		}
		for cut := 1; cut < len(body); cut++ {
			bad[fmt.Sprint("cut at ", cut)] = body[:cut]
		}
		for name, sent := range bad {
			a := s.send("POST", path, keyAll, sent, "Content-Type", "-", "Content-Type", "application/json")
			if a.code != 40000 || a.closes {
				t.Errorf("%s, %s: status %d, closes: %v, %s", path, name, a.status, a.closes, a.body)
			}
		}
	}
	if calls := store.calls.Load() - before; calls != 0 {
		t.Errorf("the store was asked %d times", calls)
	}
	for _, route := range routes {
		s.send("POST", route.path, keyAll, "{"+route.member+route.rest+"}").must(t, 0)
	}
}

// The worst body within the limit costs about as much as a valid body of the same size.
func TestBadJSONIsCheap(t *testing.T) {
	s := newService(t)
	const size = 60 << 10
	filled := func(start, unit, end string) string {
		return start + strings.Repeat(unit, (size-len(start)-len(end))/len(unit)) + end
	}
	names := func(last string) string {
		var b strings.Builder
		b.WriteString(`{"metadata":{`)
		for i := 0; b.Len() < size-50; i++ {
			fmt.Fprintf(&b, `"%x":1,`, i)
		}
		return b.String() + last
	}
	cost := func(body string) time.Duration {
		best := time.Hour
		for range 7 {
			began := time.Now()
			s.send("POST", "/v1/orders", keyAll, body).must(t, 40000)
			best = min(best, time.Since(began))
		}
		return best
	}
	plain := cost(filled(`{"description":"`, "x", `","unknown":1}`))
	for name, body := range map[string]string{
		"open brackets":       filled("", "[", ""),
		"open objects":        filled("", `{"a":`, ""),
		"brackets":            filled(`{"a":[`, "[],", `0]`),
		"names":               names(`"0":1}}`),
		"names, unclosed":     names(""),
		"one name, always":    filled("{", `"a":1,`, "}"),
		"escapes":             filled(`{"description":"`, `\u00e9`, `\ud800"}`),
		"backslashes":         filled(`{"description":"`, `\\`, ""),
		"digits":              filled(`{"amount":`, "9", "x}"),
		"digits, a fraction":  filled(`{"amount":0.`, "9", "}"),
		"digits, an exponent": filled(`{"amount":1e`, "9", "}"),
		"blanks":              filled("{", " ", "x"),
		"bad bytes":           filled(`{"description":"`, "\xff", `"}`),
	} {
		// What grows with the square of the size takes thousands of times as long.
		if took := cost(body); took > 50*plain {
			t.Errorf("%s: %v, where a plain body takes %v", name, took, plain)
		}
	}
}

// brittle is a log that panics once after a test has armed it.
type brittle struct{ armed atomic.Bool }

func (b *brittle) Write(p []byte) (int, error) {
	if b.armed.CompareAndSwap(true, false) {
		panic("a bug")
	}
	return len(p), nil
}

// A panic outside of handlers, for instance in the log, fails its request and closes the connection. The process and
// its other requests continue.
func TestPanicOutsideOfHandlers(t *testing.T) {
	t.Parallel()
	log := &brittle{}
	s := newService(t, func(c *handlers.Config, _ *service.Config) { c.Log = zerolog.New(log) })
	log.armed.Store(true)
	if a := s.send("GET", "/v1/products", keyAll, ""); a.status != 500 || a.body != "" || !a.closes {
		t.Errorf("the request is answered %d %s, and closes: %v", a.status, a.body, a.closes)
	}
	if a := s.send("GET", "/v1/products", keyAll, ""); a.status != 200 {
		t.Errorf("the next request is answered %d %s", a.status, a.body)
	}
}
