package storetest

import (
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
)

// testAlias creates a license together with its alias, and no second license with the same alias.
func testAlias(t *testing.T, f fixture) {
	with := func(l *licensing.License, external string) (store.Write, licensing.Ref) {
		name := f.keys.AliasOf(l.Owner, external)
		metadata := &licensing.Metadata{
			ExternalKey: f.keys.SealExternalKey(l.Key.ID(), external), Changed: true,
		}
		record := licensing.Record{License: l, Metadata: metadata, NewAliases: []licensing.AliasName{name}}
		return store.Write{Ref: licensing.LicenseRef(l.Key), Record: record}, licensing.AliasRef(name)
	}
	const external = "OLD-1"
	first := f.license(3)
	license, ref := with(first, external)
	if s := f.load(ref); s.Record.Alias != nil {
		t.Fatalf("there is %+v already", s.Record.Alias)
	}
	f.mustLand(license)
	want := licensing.Alias{License: first.Key.ID(), Owner: first.Owner}
	if got := f.load(ref).Record.Alias; got == nil || *got != want {
		t.Fatalf("the alias is %+v", got)
	}
	view, err := f.store.ReadLicense(f.context(), first.Key, store.DevicePage{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := f.keys.OpenExternalKey(first.Key.ID(), view.Metadata.ExternalKey); !ok || key != external {
		t.Errorf("the external key is %q, %v", key, ok)
	}

	second := f.licenseOf(first.Owner, 3)
	license, _ = with(second, external)
	if f.commit(license).Landed {
		t.Fatal("two licenses have the same alias")
	}
	if s := f.load(licensing.LicenseRef(second.Key)); s.Record.License != nil {
		t.Error("the license was created without its alias")
	}

	// A change of the metadata keeps the external key.
	snapshots, err := f.store.Load(f.context(), store.Want{Ref: licensing.LicenseRef(first.Key), Metadata: true})
	if err != nil {
		t.Fatal(err)
	}
	cmd := licensing.UpdateLicense{Target: licensing.Target{Key: first.Key}, Metadata: `{"a":1}`}
	if _, err := licensing.Apply(&snapshots[0].Record, cmd, created.Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	f.mustLand(store.Write{
		Ref: licensing.LicenseRef(first.Key), Token: snapshots[0].Token, Record: snapshots[0].Record,
	})
	after, err := f.store.ReadLicense(f.context(), first.Key, store.DevicePage{Limit: 1})
	if err != nil || after.Metadata.Object != `{"a":1}` || after.Metadata.ExternalKey != view.Metadata.ExternalKey {
		t.Errorf("after a change of the metadata: %+v, %v", after, err)
	}

	// Two reissues in one transaction make the aliases of both.
	if snapshots, err = f.store.Load(f.context(),
		store.Want{Ref: licensing.LicenseRef(first.Key), Metadata: true}); err != nil {
		t.Fatal(err)
	}
	var made []licensing.LicenseKey
	for range 2 {
		key := f.keys.MintReissued("LIC", first.Owner, f.entropy())
		made = append(made, key)
		cmd := licensing.ReissueLicense{Target: licensing.Target{Key: first.Key}, New: key}
		if _, err := licensing.Apply(&snapshots[0].Record, cmd, created.Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
	}
	f.mustLand(store.Write{
		Ref: licensing.LicenseRef(first.Key), Token: snapshots[0].Token, Record: snapshots[0].Record,
	})
	for i, key := range made {
		if got := f.load(licensing.AliasRef(key.Alias())).Record.Alias; got == nil || *got != want {
			t.Errorf("the alias of new key %d is %+v", i, got)
		}
	}
}

// testSettings stores and changes the settings of an owner.
func testSettings(t *testing.T, f fixture) {
	owner := f.owner()
	ref := licensing.SettingsRef(owner)
	run := func(cmd licensing.Command) store.Outcome {
		t.Helper()
		s := f.load(ref)
		if _, err := licensing.Apply(&s.Record, cmd, created); err != nil {
			t.Fatal(err)
		}
		return f.commit(store.Write{Ref: ref, Token: s.Token, Record: s.Record})
	}
	stale := f.load(ref)
	run(licensing.ChangeSettings{Owner: owner, ExternalKeys: licensing.MatchCompact})
	run(licensing.FixKeyMatching{Owner: owner})
	want := &licensing.Settings{Owner: owner, ExternalKeys: licensing.MatchCompact, KeysFixed: true}
	f.equal("settings", f.load(ref).Record.Settings, want)
	stale.Record.Settings = &licensing.Settings{Owner: owner}
	if f.commit(store.Write{Ref: ref, Token: stale.Token, Record: stale.Record}).Landed {
		t.Error("a stale change of settings landed")
	}
	f.equal("settings", f.load(ref).Record.Settings, want)
}
