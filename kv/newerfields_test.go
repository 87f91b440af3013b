package kv

import (
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

// TestNewerFormat reads what a newer node wrote, and keeps the fields that it does
// not know when it writes the record back.
func TestNewerFormat(t *testing.T) {
	s := openStore(t)
	ref, _ := createStored(t, s)
	ctx := testContext(t, 10*time.Second)
	read := func() []byte {
		t.Helper()
		r, err := server.client.Get(ctx, recordKey(ref))
		if err != nil {
			t.Fatal(err)
		}
		return r.Kvs[0].Value
	}
	stored, err := decodeLicense(licensing.LicenseKey(ref.ID).ID(), read())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		stored.writers = append(stored.writers, writer{by: store.Incarnation{byte(i), 1}, swap: 1})
	}
	unknown := protowire.AppendFixed64(protowire.AppendTag(newerField(), 98, protowire.Fixed64Type), 42)
	newer := append(stored.encode(), unknown...)
	if _, err := server.client.Put(ctx, recordKey(ref), string(newer)); err != nil {
		t.Fatal(err)
	}
	if outcome, err := s.Commit(ctx, bind(t, ref, loadOne(t, s, ref, "a"), "a")); err != nil || !outcome.Landed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	got, err := decodeLicense(licensing.LicenseKey(ref.ID).ID(), read())
	if err != nil {
		t.Fatal(err)
	}
	equal(t, got.unknown, unknown)
	if len(got.devices) != 1 || len(got.writers) != maxWriters {
		t.Errorf("%d devices, %d writers", len(got.devices), len(got.writers))
	}
}
