package offline

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// badSets answers requests for the set of receipt keys with what is none. The client refuses the receipt, does not
// fail, and activates once the set comes.
func (w *world) badSets(t *testing.T) {
	for name, body := range map[string]string{
		"deep": strings.Repeat(`{"signed":[`, 50_000), "deep and whole": strings.Repeat("[", 50_000) +
			strings.Repeat("]", 50_000), "null": "null", "a list": `["signed"]`, "a number": `{"signed":7}`,
		"no UTF-8": "\xff\xfe", "empty": "", "half of a pair": `{"signed":"\ud800"}`,
	} {
		p := w.person(t, "editor")
		w.network.tell(func(f *failures) { f.last, f.times, f.status, f.body = "/jwks.json", 1<<30, 200, body })
		if got := p.does("activate"); got.OK || got.Code != 0 {
			t.Errorf("a set that is %s: %+v", name, got)
		}
		w.network.tell(func(f *failures) { f.last = "" })
		if got := p.does("activate"); got != good || !p.runs() {
			t.Errorf("after a set that is %s: %+v", name, got)
		}
	}
}

// withoutLists lets a program get no list when it needs one. The answer to a validation is enough then. A list that may
// be kept for long is not: in its grace, the program asks again.
func (w *world) withoutLists(t *testing.T) {
	p := w.listed(t)
	p.device.RetryFor = 0
	w.network.tell(func(f *failures) {
		f.last, f.times, f.status = "/revocations", 1<<30, 503
		f.body = `{"code":50300,"message":"no","error":{"reason":"unavailable","retryable":true,"request_id":"r"}}`
	})
	p.ahead = 11 * 60
	w.network.tell(func(f *failures) { f.validations = 0 })
	p.refresh() // no outcome is good: by the clock of the service, a new receipt is too old for this device, too
	w.network.tell(func(f *failures) {
		if f.last = ""; f.validations == 0 {
			t.Error("the program asks for no receipt while it gets no list")
		}
	})

	w.list(t, w.suspended(t))
	kept := w.listed(t)
	kept.device.Grace = 600
	w.network.tell(func(f *failures) { f.maxAge = "31536000" })
	if got, asked := kept.refresh(); got != good || len(asked) != 1 {
		t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
	}
	kept.suspend(t)
	w.list(t, kept)
	w.validating(false)
	defer w.validating(true)
	kept.ahead = 10*60 + 30
	if got, asked := kept.refresh(); got.OK || len(asked) == 0 {
		t.Errorf("in the grace: %+v with %+v, want a new list, which voids the receipt", got, asked)
	}
	w.network.tell(func(f *failures) { f.maxAge = "" })
}

// aboutLists: what an answer says about a list counts only if the list was accepted, and a max-age only if the service
// may have sent it. So neither another server nor a wrong clock keeps a program from its next list.
func (w *world) aboutLists(t *testing.T) {
	w.list(t, w.suspended(t))
	p := w.listed(t)
	asks := func(what string) {
		t.Helper()
		if got, asked := p.refresh(); got != good || len(asked) != 1 || asked[0].query == "" {
			t.Errorf("%s: %+v with %+v, want one increment", what, got, asked)
		}
	}
	if got, asked := p.refresh(); got != good || len(asked) != 1 {
		t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
	}
	w.network.tell(func(f *failures) { f.list, f.maxAge = "{}", "290" })
	if got, asked := p.refresh(); !got.OK || len(asked) == 0 {
		t.Fatalf("a list that is none: %+v with %+v", got, asked)
	}
	w.network.tell(func(f *failures) { f.list, f.maxAge = "", "" })
	asks("after a list that is none, with a max-age")

	for name, change := range map[string]func(lists map[string]any){
		"a max-age that ends in a year": func(lists map[string]any) {
			lists["until"] = time.Now().Add(365 * 24 * time.Hour).Unix()
		},
		"an ETag of two lines":   func(lists map[string]any) { lists["etag"] = "\"a\"\r\nX-Evil: 1" },
		"an ETag with an umlaut": func(lists map[string]any) { lists["etag"] = "\"\u00e4\"" },
	} {
		var s stored
		if err := json.Unmarshal([]byte(p.read(t)), &s); err != nil {
			t.Fatal(err)
		}
		change(s.Lists)
		text := must[[]byte](t)(json.Marshal(s))
		if err := os.WriteFile(p.device.State, text, 0o600); err != nil {
			t.Fatal(err)
		}
		asks(name)
	}
}
