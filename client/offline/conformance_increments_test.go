package offline

import (
	"crypto/ed25519"
	"maps"
	"slices"
	"testing"

	"licet/client"
	"licet/receipt"
)

// increments answers requests for increments with documents that a client must refuse. In the same call, the client
// then asks for the whole list, and keeps to what the whole list says.
func (w *world) increments(t *testing.T) {
	_, old := w.list(t, w.suspended(t), w.suspended(t), w.suspended(t))
	names := []string{"altered", "forged", "no document", "empty", "of another account", "with a gap"}
	stays, void := make(map[string]*listed), make(map[string]*listed)
	for _, name := range names {
		stays[name], void[name] = w.listed(t), w.listed(t)
		for _, p := range []*listed{stays[name], void[name]} {
			if got, asked := p.refresh(); got != good || len(asked) != 1 {
				t.Fatalf("the first list: %+v with %+v, want one list", got, asked)
			}
		}
	}
	for _, p := range void {
		p.suspend(t)
	}
	_, newer := w.list(t, slices.Collect(maps.Values(void))...)

	w.validating(false)
	defer w.validating(true)
	for name, increment := range w.badIncrements(t, old, newer) {
		w.network.tell(func(f *failures) { f.increment = increment })
		for _, p := range []*listed{stays[name], void[name]} {
			got, asked := p.refresh()
			if got.OK != (p == stays[name]) || len(asked) != 2 || asked[0].query == "" || asked[1].query != "" {
				t.Errorf("an increment that is %s: %+v with %+v, want the outcome of the whole list", name, got, asked)
			}
			if p.runs() != (p == stays[name]) {
				t.Errorf("after an increment that is %s, the program runs without a network: %v", name, !got.OK)
			}
		}
	}
	w.network.tell(func(f *failures) { f.increment = "" })
}

// badIncrements returns increments that no device may take whose list is old, by what is wrong with them.
func (w *world) badIncrements(t *testing.T, old, newer receipt.Revocations) map[string]string {
	t.Helper()
	list := func(s *shop, after int64) string {
		d := must[client.Document](t)(s.api.Revocations(t.Context(), s.keys.AccountID, s.keys.Mode, after, ""))
		return d.Text
	}
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	forged := newer
	forged.After, forged.Entries = old.Epoch, nil
	genuine, gap := list(w.shop, old.Epoch), list(w.shop, newer.Epoch)
	if after := peek(genuine).After; after == 0 || after > old.Epoch || peek(gap).After <= old.Epoch {
		t.Fatalf("the increments continue %d and %d", after, peek(gap).After)
	}
	return map[string]string{
		"altered":            genuine[:len(genuine)-8] + "AAAA" + genuine[len(genuine)-4:],
		"forged":             must[string](t)(forged.Sign(receipt.NewSigner(key))),
		"no document":        "{}",
		"empty":              "e30.e30.e30",
		"of another account": list(newShop(t), 0),
		"with a gap":         gap,
	}
}
