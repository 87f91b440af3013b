package layout

import (
	"testing"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
)

// TestLocationIn patches the location into encoded records of each kind that has events, and finds the records
// unchanged but for the location.
func TestLocationIn(t *testing.T) {
	at := keyspace.Location{Epoch: 0x0102030405060708, Block: 1<<31 | 9}
	patched := func(value []byte) []byte {
		at.Patch(LocationIn(value))
		return value
	}

	license := goldenLicense()
	license.License.Sequence, license.LastEvent = 300, keyspace.Location{Epoch: 7}
	gotLicense := kvtest.Must(DecodeLicense(kvtest.Key.ID(), patched(license.Encode())))(t)
	license.LastEvent = at
	kvtest.Equal(t, gotLicense, license)

	order := &Order{Order: *goldenOrder(), LastEvent: keyspace.Location{Epoch: 7}}
	order.Order.Sequence = 1
	value := patched(order.Encode())
	gotOrder := kvtest.Must(DecodeOrder(licensing.OrderRef(kvtest.Owner, order.Order.OrderNo), value))(t)
	order.LastEvent = at
	kvtest.Equal(t, gotOrder, order)

	webhooks := goldenWebhooks()
	gotWebhooks := kvtest.Must(DecodeWebhooks(kvtest.Owner, patched(webhooks.Encode())))(t)
	webhooks.LastEvent = at
	kvtest.Equal(t, gotWebhooks, webhooks)

	usage := goldenUsage()
	gotUsage := kvtest.Must(DecodeUsage(kvtest.Owner, patched(usage.Encode())))(t)
	usage.LastEvent = at
	kvtest.Equal(t, gotUsage, usage)
}
