package storetest

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testProducts creates, replaces and removes a product, each time once with the stored snapshot and once with a stale
// one.
func testProducts(t *testing.T, f fixture) {
	owner := f.owner()
	ref := licensing.ProductRef(owner, "pro")
	product := func(name string) *licensing.Product {
		return &licensing.Product{
			ID: "pro", Owner: owner, Name: name, Metadata: `{"sku":7}`, CreatedAt: created,
			Terms: licensing.Terms{
				KeyPrefix: "PRO", MaxDevices: 5, Validity: licensing.Period{Years: 1},
				SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 3},
			},
		}
	}
	var stale store.Token
	for _, name := range []string{"first", "second", ""} {
		before := f.load(ref)
		write := store.Write{Ref: ref, Token: before.Token,
			Record: licensing.Record{Product: product(name), Changed: true}}
		f.mustLand(write)
		f.equal("product", f.load(ref).Record.Product, product(name))
		write.Record.Product = product("too late")
		outcome := f.commit(write)
		if outcome.Landed {
			t.Fatal("a swap on what a product was landed")
		}
		f.equal("rival", f.rival(outcome, ref).Record.Product, product(name))
		stale = before.Token
	}
	remove := store.Write{Ref: ref, Token: stale, Record: licensing.Record{Changed: true}}
	if f.commit(remove).Landed {
		t.Fatal("what a product was is removed")
	}
	remove.Token = f.load(ref).Token
	f.mustLand(remove)
	if s := f.load(ref); s.Record.Product != nil || s.Token != nil {
		t.Fatalf("after it was removed there is %+v", s.Record.Product)
	}
	if f.commit(store.Write{Ref: ref, Token: remove.Token,
		Record: licensing.Record{Product: product("on nothing")}}).Landed {
		t.Fatal("a product that is gone was replaced")
	}
	f.mustLand(store.Write{Ref: ref, Record: licensing.Record{Product: product("anew")}})
	f.equal("product", f.load(ref).Record.Product, product("anew"))
}

// testTerms changes the entitlements of a product: each version of its terms stays, also when the product goes, and may
// be stored again.
func testTerms(t *testing.T, f fixture) {
	owner := f.owner()
	ref := licensing.ProductRef(owner, "pro")
	terms := func(e licensing.Entitlements) *licensing.VersionedTerms {
		return f.load(licensing.TermsRef(owner, e.Version())).Record.Terms
	}
	const one, two = licensing.Entitlements(`{"a":1}`), licensing.Entitlements(`{"a":2}`)
	if terms(one) != nil {
		t.Fatal("a version exists before its product")
	}
	for _, e := range []licensing.Entitlements{one, two, one, ""} {
		s := f.load(ref)
		cmd := licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms(), Entitlements: e}
		if _, err := licensing.Apply(&s.Record, cmd, created); err != nil {
			t.Fatal(err)
		}
		f.mustLand(store.Write{Ref: ref, Token: s.Token, Record: s.Record})
		if p := f.load(ref).Record.Product; p.Entitlements != e || p.Terms.Version != e.Version() {
			t.Errorf("stored is %+v, want %s", p, e)
		}
	}
	// Several commands may make one write, of which only the result is stored.
	const three = licensing.Entitlements(`{"a":3}`)
	for _, last := range []licensing.Command{
		licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms()},
		licensing.DeleteProduct{},
	} {
		s := f.load(ref)
		cmd := licensing.PutProduct{ID: "pro", Owner: owner, Terms: licensing.DefaultTerms(), Entitlements: three}
		for _, cmd := range []licensing.Command{cmd, last} {
			if _, err := licensing.Apply(&s.Record, cmd, created); err != nil {
				t.Fatal(err)
			}
		}
		f.mustLand(store.Write{Ref: ref, Token: s.Token, Record: s.Record})
		if terms("") != nil {
			t.Error("no entitlements have a version")
		}
	}
	for _, e := range []licensing.Entitlements{one, two} {
		f.equal("terms", terms(e), &licensing.VersionedTerms{Entitlements: e})
	}
}

// testMetadata changes the metadata of a license along with its facts: both or
// neither, and only where it was asked for.
func testMetadata(t *testing.T, f fixture) {
	l := f.createLicense(3)
	ref := licensing.LicenseRef(l.Key)
	load := func() store.Snapshot {
		t.Helper()
		snapshots, err := f.store.Load(f.context(), store.Want{Ref: ref, Devices: []string{"a"}, Metadata: true})
		if err != nil {
			t.Fatal(err)
		}
		return snapshots[0]
	}
	update := func(s store.Snapshot, most int, patch string) store.Write {
		t.Helper()
		cmd := licensing.UpdateLicense{Target: licensing.Target{Key: l.Key}, MaxDevices: &most, Metadata: patch}
		if _, err := licensing.Apply(&s.Record, cmd, created); err != nil {
			t.Fatal(err)
		}
		return store.Write{Ref: ref, Token: s.Token, Record: s.Record}
	}
	stored := func(want string, most int) {
		t.Helper()
		view, err := f.store.ReadLicense(f.context(), l.Key, store.DevicePage{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		if s := load(); view.Metadata.Object != want || view.License.MaxDevices != most || s.Record.Metadata == nil ||
			s.Record.Metadata.Object != want {
			t.Fatalf("stored is %q with %d devices, loaded %+v; want %q with %d", view.Metadata.Object,
				view.License.MaxDevices, s.Record.Metadata, want, most)
		}
	}
	stored("", 3)
	if s := f.load(ref); s.Record.Metadata != nil {
		t.Error("Load returned metadata that the caller did not want")
	}
	if _, _, ok := f.store.Recall(store.Want{Ref: ref, Metadata: true}); ok {
		t.Log("the store remembers metadata")
	}
	f.mustLand(update(load(), 4, `{"a":1,"b":2}`))
	stored(`{"a":1,"b":2}`, 4)

	// A rival changes the metadata alone, and then a device alone: either way what
	// was read before is stale as a whole.
	for _, change := range []func(){
		func() { f.mustLand(update(load(), 4, `{"a":3}`)) },
		func() { f.activate(l, created.Add(time.Minute), "a") },
	} {
		stale := load()
		before := stale.Record.Metadata.Object
		change()
		outcome := f.commit(update(stale, 9, `{"b":null}`))
		if outcome.Landed {
			t.Fatalf("a swap on metadata that was %s landed", before)
		}
		stored(load().Record.Metadata.Object, 4)
		if len(outcome.Rivals) > 0 {
			rival := outcome.Rivals[0].Record
			if rival.Metadata == nil || rival.Metadata.Object != `{"a":3,"b":2}` || rival.License.MaxDevices != 4 {
				t.Fatalf("the rival is %+v with %+v", rival.License, rival.Metadata)
			}
		}
	}
	f.mustLand(update(load(), 4, `{"a":null}`))
	stored(`{"b":2}`, 4)
	f.mustLand(update(load(), 5, `{"b":null}`))
	stored("", 5)
	if view, err := f.store.ReadLicense(f.context(), l.Key, store.DevicePage{Limit: 1}); err != nil ||
		len(view.Devices) != 1 {
		t.Errorf("the device is gone: %+v, %v", view, err)
	}
}
