package kv

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestNewerFormat reads what a newer node wrote, and keeps the fields that it does
// not know when it writes the record back.
func TestNewerFormat(t *testing.T) {
	s := openStore(t)
	ref, _ := createStored(t, s)
	ctx := t.Context()
	read := func() []byte {
		t.Helper()
		r, err := server.Client.Get(ctx, keyspace.RecordKey(ref))
		if err != nil {
			t.Fatal(err)
		}
		return r.Kvs[0].Value
	}
	stored, err := layout.DecodeLicense(ref.LicenseID(), read())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 9 {
		stored.Writers = append(stored.Writers, layout.Writer{By: store.Incarnation{byte(i), 1}, Swap: 1})
	}
	unknown := protowire.AppendFixed64(protowire.AppendTag(kvtest.NewerField(), 98, protowire.Fixed64Type), 42)
	newer := append(stored.Encode(), unknown...)
	if _, err := server.Client.Put(ctx, keyspace.RecordKey(ref), string(newer)); err != nil {
		t.Fatal(err)
	}
	if outcome, err := s.Commit(ctx, bind(t, ref, loadOne(t, s, ref, "a"), "a")); err != nil || !outcome.Landed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	got, err := layout.DecodeLicense(ref.LicenseID(), read())
	if err != nil {
		t.Fatal(err)
	}
	kvtest.Equal(t, got.Unknown, unknown)
	if len(got.Devices) != 1 || len(got.Writers) != layout.MaxWriters {
		t.Errorf("%d devices, %d writers", len(got.Devices), len(got.Writers))
	}

	// The metadata of the license keeps its newer fields too.
	place := keyspace.MetadataKey(ref.LicenseID())
	newer = append(layout.EncodeMetadata(licensing.Metadata{Object: `{"a":1}`}, nil), unknown...)
	if _, err := server.Client.Put(ctx, place, string(newer)); err != nil {
		t.Fatal(err)
	}
	snapshots, err := s.Load(ctx, store.Want{Ref: ref, Metadata: true})
	if err != nil {
		t.Fatal(err)
	}
	update := licensing.UpdateLicense{Target: licensing.Target{Key: got.License.Key}, Metadata: `{"b":2}`}
	if _, err := licensing.Apply(&snapshots[0].Record, update, kvtest.Time); err != nil {
		t.Fatal(err)
	}
	if outcome, err := s.Commit(ctx, store.Change{Writes: []store.Write{
		{Ref: ref, Token: snapshots[0].Token, Record: snapshots[0].Record},
	}}); err != nil || !outcome.Landed {
		t.Fatalf("%+v, %v", outcome, err)
	}
	r, err := server.Client.Get(ctx, place)
	if err != nil {
		t.Fatal(err)
	}
	metadata, kept, err := layout.DecodeMetadata(r.Kvs[0].Value)
	if err != nil || metadata.Object != `{"a":1,"b":2}` {
		t.Errorf("%+v, %v", metadata, err)
	}
	kvtest.Equal(t, kept, unknown)
}
