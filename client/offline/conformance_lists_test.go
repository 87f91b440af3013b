package offline

import (
	"bytes"
	"crypto/ed25519"
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"licet/client"
	"licet/handlers"
	"licet/receipt"
)

// listRequest is a request of a client for a list of revocations.
type listRequest struct {
	query  string
	tagged bool // it has If-None-Match
	status int  // of the answer
}

// answerList answers a request for a list of revocations, and notes it.
func (f *failures) answerList(w http.ResponseWriter, r *http.Request, list string) {
	asked := listRequest{query: r.URL.RawQuery, tagged: r.Header.Get("If-None-Match") != "", status: http.StatusOK}
	f.mu.Lock()
	noted := &statusNote{ResponseWriter: w, status: http.StatusOK, maxAge: f.maxAge}
	f.mu.Unlock()
	if list != "" {
		noted.WriteHeader(http.StatusOK)
		_, _ = io.WriteString(noted, list)
	} else {
		f.service.ServeHTTP(noted, r)
		asked.status = noted.status
	}
	f.tell(func(f *failures) { f.asked = append(f.asked, asked) })
}

// statusNote notes the status of an answer, and may change how long caches keep the answer.
type statusNote struct {
	http.ResponseWriter
	status int
	maxAge string
}

func (n *statusNote) WriteHeader(status int) {
	n.status = status
	if n.maxAge != "" {
		n.Header().Set("Cache-Control", "max-age="+n.maxAge)
	}
	n.ResponseWriter.WriteHeader(status)
}

// The device's clock is so many seconds ahead when the first list of the product "listed" is due, and each next one: a
// client asks again after half of revocation_max_age, and after the max-age of the last answer.
const (
	firstList = 301
	nextList  = 25
)

// listed is a person whose program needs lists of revocations.
type listed struct {
	*person
	ahead int // of the device's clock when the next list is due
}

func (w *world) listed(t *testing.T) *listed {
	t.Helper()
	p := w.person(t, "listed")
	if got := p.does("activate"); got != good {
		t.Fatalf("activate: %+v", got)
	}
	return &listed{p, firstList}
}

// refresh lets the program get a list that is due, and returns its requests for lists.
func (p *listed) refresh() (got outcome, asked []listRequest) {
	p.network.tell(func(f *failures) { f.asked = nil })
	got = p.does("refresh", func(c *call) { c.Ahead = p.ahead })
	p.network.tell(func(f *failures) { asked = f.asked })
	p.ahead += nextList
	return got, asked
}

// suspended is a person of listed whose license the shop has suspended.
func (w *world) suspended(t *testing.T) *listed {
	t.Helper()
	p := w.listed(t)
	p.suspend(t)
	return p
}

// list returns the account's list, as soon as the licenses of some persons are on it. The service answers the same list
// for five seconds or longer, so the first list after a suspension may lack the license.
func (w *world) list(t *testing.T, with ...*listed) (text string, list receipt.Revocations) {
	t.Helper()
	lacks := func(p *listed) bool {
		var held receipt.Receipt
		receipt.Peek(receiptIn(t, p.read(t)), &held)
		name := receipt.RevocationName(held.LicenseID, "")
		for entry := range slices.Chunk(list.Entries, len(name)+8) {
			if bytes.HasPrefix(entry, name[:]) {
				return false
			}
		}
		return true
	}
	for len(text) == 0 || slices.ContainsFunc(with, lacks) {
		text = must[client.Document](t)(w.api.Revocations(t.Context(), w.keys.AccountID, w.keys.Mode, 0, "")).Text
		list = receipt.Revocations{}
		receipt.Peek(text, &list)
		select {
		case <-t.Context().Done():
			t.Fatal("the list has no new entry")
		case <-time.After(50 * time.Millisecond):
		}
	}
	return text, list
}

// validating refuses validations, so that nothing but lists tells a program what is void; or lets them through.
func (w *world) validating(is bool) {
	w.network.tell(func(f *failures) {
		f.last, f.times = "/validate", 1<<30
		if is {
			f.last = ""
		}
		f.status, f.body = http.StatusInternalServerError,
			`{"code":50000,"message":"no","error":{"reason":"internal","retryable":false,"request_id":"r"}}`
	})
}

// lists drives a client through whole lists, increments, lists that have not changed, and lists that are not genuine.
func (w *world) lists(t *testing.T) {
	p, later := w.listed(t), w.listed(t)
	oldText, old := w.list(t, w.suspended(t))

	for _, each := range []*listed{p, later} {
		got, asked := each.refresh()
		if got != good || len(asked) != 1 || asked[0].status != http.StatusOK {
			t.Fatalf("a due list: %+v with %+v, want one list", got, asked)
		}
	}
	// Nothing has changed since, and the service answers one list for five seconds or longer.
	unchanged, tagged := false, true
	increment := "after=" + strconv.FormatInt(old.Epoch, 10)
	for range 3 {
		got, asked := p.refresh()
		if got != good || len(asked) != 1 || asked[0].query != increment {
			t.Fatalf("the next list: %+v with %+v, want one request after %d", got, asked, old.Epoch)
		}
		tagged, unchanged = tagged && asked[0].tagged, unchanged || asked[0].status == http.StatusNotModified
	}
	if !tagged {
		t.Error("a request for an increment has no If-None-Match")
	}
	t.Logf("a list was unchanged: %v", unchanged)

	altered := oldText[:len(oldText)-8] + "AAAA" + oldText[len(oldText)-4:]
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	fresh := old
	fresh.AsOf, fresh.Entries = time.Now().Unix(), nil
	forged := must[string](t)(fresh.Sign(receipt.NewSigner(key)))
	foreign := newShop(t)
	strange := must[client.Document](t)(foreign.api.Revocations(t.Context(), foreign.keys.AccountID, foreign.keys.Mode,
		0, "")).Text
	for name, list := range map[string]string{"altered": altered, "forged": forged, "of another account": strange,
		"no list": "{}"} {
		w.network.tell(func(f *failures) { f.list = list })
		if got, asked := p.refresh(); got.OK == false || len(asked) == 0 {
			t.Errorf("a list that is %s: %+v after %d requests, want that it changes nothing", name, got, len(asked))
		}
		if !p.runs() {
			t.Errorf("the program does not run without a network after a list that is %s", name)
		}
	}
	// Such a list makes no receipt younger.
	w.validating(false)
	w.network.tell(func(f *failures) { f.list = forged })
	p.ahead = 10*60 + 60
	if got, _ := p.refresh(); got.OK {
		t.Error("a forged list replaces a list that is too old")
	}
	w.network.tell(func(f *failures) { f.list = "" })

	later.suspend(t)
	_, newer := w.list(t, later)
	got, asked := later.refresh()
	if got.OK || len(asked) == 0 || asked[0].query != increment {
		t.Errorf("after the suspension: %+v with %+v, want a refusal by an increment after %d", got, asked, old.Epoch)
	}
	w.network.tell(func(f *failures) { f.list = oldText })
	if got, _ := later.refresh(); got.OK || later.runs() {
		t.Errorf("an older list than %d makes the receipt good again", newer.Epoch)
	}
	w.network.tell(func(f *failures) { f.list = "" })
	w.validating(true)
	must[*client.License](t)(w.api.Licenses.Reinstate(t.Context(), later.key, ""))
	if got, _ := later.refresh(); got != good || !later.runs() {
		t.Errorf("after the reinstatement: %+v, want that a newer receipt counts", got)
	}
}

// refuseList lets the service refuse lists. The program goes on with the documents that it has.
func (w *world) refuseList(t *testing.T, refusal handlers.Refusal) {
	p := w.listed(t)
	w.network.tell(func(f *failures) { f.refuse("/revocations", 1<<30, refusal) })
	got, _ := p.refresh()
	var requests int
	w.network.tell(func(f *failures) { f.last, requests = "", f.requests })
	if !got.OK || requests == 0 || requests > 1 && !refusal.RetryAfter || !p.runs() {
		t.Errorf("%+v after %d requests, want that the program goes on after one", got, requests)
	}
}
