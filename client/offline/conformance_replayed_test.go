package offline

import (
	"encoding/json"
	"testing"
	"time"

	"licet/client"
	"licet/receipt"
)

// replayed answers requests with a genuine list from before, of the epoch of the client's list. The client keeps its
// own list: with the older one, the receipt would count for a shorter time.
func (w *world) replayed(t *testing.T) {
	get := func() (text string, list receipt.Revocations) {
		text = must[client.Document](t)(w.api.Revocations(t.Context(), w.keys.AccountID, w.keys.Mode, 0, "")).Text
		receipt.Peek(text, &list)
		return text, list
	}
	oldText, old := get()
	for newer := old; newer.AsOf <= old.AsOf; { // the service reads a list every five seconds
		if _, newer = get(); newer.Epoch != old.Epoch {
			t.Fatalf("the epoch is %d, want %d: the test measures nothing", newer.Epoch, old.Epoch)
		}
		time.Sleep(50 * time.Millisecond)
	}
	p := w.listed(t)
	if got, asked := p.refresh(); got != good || len(asked) != 1 {
		t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
	}
	kept := p.asOf(t)
	if kept <= old.AsOf {
		t.Fatalf("the client's list is as of %d, want a list after %d", kept, old.AsOf)
	}
	w.network.tell(func(f *failures) { f.list = oldText })
	defer w.network.tell(func(f *failures) { f.list = "" })
	w.validating(false)
	defer w.validating(true)
	got, asked := p.refresh()
	if !got.OK || len(asked) == 0 || !p.runs() {
		t.Errorf("a list from before: %+v with %+v, want that it changes nothing", got, asked)
	}
	if now := p.asOf(t); now != kept {
		t.Errorf("the client's list is as of %d, want %d", now, kept)
	}
}

// asOf returns as_of of the newest list in the state of a device.
func (p *listed) asOf(t *testing.T) int64 {
	t.Helper()
	var s struct {
		Documents receipt.Documents `json:"documents"`
	}
	if err := json.Unmarshal([]byte(p.read(t)), &s); err != nil {
		t.Fatal(err)
	}
	lists := s.Documents.Revocations
	return peek(lists[len(lists)-1]).AsOf
}
