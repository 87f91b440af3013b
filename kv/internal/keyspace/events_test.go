package keyspace

import (
	"testing"

	"licet/kv/internal/kvtest"
	"licet/licensing"
)

// TestEpochIn patches the epoch into the key of a record's events: the key of that epoch results.
func TestEpochIn(t *testing.T) {
	const epoch Epoch = 0x0102030405060708
	record := LicenseInEvents(kvtest.Key.ID())
	for _, owner := range []licensing.Owner{kvtest.Owner, kvtest.OtherOwner} {
		key := []byte(EventsKeyOf(owner, Location{}, record, 7))
		epoch.Patch(EpochIn(owner, key))
		if want := EventsKeyOf(owner, Location{Epoch: epoch}, record, 7); string(key) != want {
			t.Errorf("got %q, want %q", key, want)
		}
	}
}
