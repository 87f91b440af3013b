package layout

import (
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// TestFieldNumbers: a table lists each number once, and the unknown fields at its end.
func TestFieldNumbers(t *testing.T) {
	for i, table := range []fieldTable{
		(&Order{}).table(), (&Product{}).table(), termsTable(&licensing.Terms{}),
		(&APIKey{}).table(), previousTable(&licensing.PreviousSecret{}), claimTable(&licensing.Claim{}, new([]Writer)),
		grantTable(&licensing.GrantProgress{}), refusalTable(&licensing.Error{}),
		redactionTable(&licensing.Redaction{}), (&Webhooks{}).table(),
		endpointTable(&licensing.Endpoint{}, new([]byte)), (&Progress{}).table(), deliveryTable(&store.Delivery{}),
		attemptTable(&store.DeliveryAttempt{}), loggedTable(&store.Delivery{}, new(uint64)),
		replayTable(&licensing.Owner{}, &store.Replay{}), registrationTable(&store.Registration{}, new(time.Time)),
		(&RetentionMark{}).table(), keyUseTable(new(time.Time)), orderOwnerTable(&licensing.Owner{}),
		(&SealedIDKey{}).table(), listenRequestTable(new(bool)), (&Usage{}).table(), (&Recount{}).table(),
	} {
		listed := make(map[protowire.Number]bool)
		for at, f := range table {
			if listed[f.num] || f.num == otherNumbers && at != len(table)-1 {
				t.Errorf("table %d: entry %d must not have the number %d", i, at, f.num)
			}
			listed[f.num] = true
		}
	}
}

// TestGoldenFields compares the bytes of each kind of value without any optional field, and with the fields that the
// values of values.golden and deliveries.golden leave out.
func TestGoldenFields(t *testing.T) {
	var b strings.Builder
	show := func(name string, value []byte) { fmt.Fprintf(&b, "%s\n%s\n", name, hex.Dump(value)) }
	unknown := appendString(nil, 99, "of a newer node")
	terms := licensing.Terms{
		MaxDevices: 300, Validity: licensing.Period{Years: 1, Days: 2, Clock: 3 * time.Hour},
		SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 2},
	}
	owned := kvtest.Owner
	sandbox := licensing.Owner{AccountID: "acme", Mode: licensing.Test}

	order := func(o licensing.Order, lastEvent keyspace.Location, unknown []byte) []byte {
		return (&Order{Order: o, LastEvent: lastEvent, Unknown: unknown}).Encode()
	}
	show("order without optional fields", order(licensing.Order{}, keyspace.Location{}, nil))
	show("order with the other fields", order(
		licensing.Order{OrderPayment: licensing.OrderPayment{Amount: -1, RefundBy: "key_01"}, Terms: terms,
			Sequence: 300},
		keyspace.Location{Epoch: 0x0102030405, Block: 0x86070809}, unknown))
	show("owner in test mode of an order", EncodeOwner(sandbox))
	show("product without optional fields", (&Product{}).Encode())
	show("product with the other fields", (&Product{Product: licensing.Product{Terms: terms},
		Unknown: unknown}).Encode())

	show("API key without optional fields", (&APIKey{Key: licensing.APIKey{Owner: owned}}).Encode())
	show("API key with the other fields", (&APIKey{Key: licensing.APIKey{
		Owner: sandbox, Scopes: []string{"", "orders"}, Previous: licensing.PreviousSecret{Version: 1},
	}, Unknown: unknown}).Encode())
	show("use of an API key at no time", EncodeKeyUse(time.Time{}))

	for _, c := range []licensing.Claim{
		{},
		{Grant: &licensing.GrantProgress{}, Refusal: &licensing.Error{}, Redaction: &licensing.Redaction{}},
		{Grant: &licensing.GrantProgress{Terms: terms, Quantity: 1}},
	} {
		show("claim", EncodeClaim(&c, nil))
	}

	show("endpoints of webhooks without optional fields", (&Webhooks{}).Encode())
	show("endpoints of webhooks with the other fields", (&Webhooks{
		Webhooks: licensing.Webhooks{Endpoints: []licensing.Endpoint{
			{}, {ID: "we_0", Types: []licensing.EventType{""}, Previous: licensing.PreviousSecret{MasterID: "2025"}},
		}, Sequence: 1},
		LastEvent: keyspace.Location{Epoch: 0x0102030405, Block: 0x86070809},
		Unknown:   unknown, UnknownOf: map[string][]byte{"we_0": unknown},
	}).Encode())
	show("usage without optional fields", (&Usage{}).Encode())
	show("usage below zero", (&Usage{Usage: licensing.Usage{Size: licensing.Size{Bytes: -1, Keys: -300}},
		Unknown: unknown}).Encode())
	show("fence without moves", (&ListenFence{}).Encode())
	show("request to listen no longer", EncodeListenRequest(false))

	show("progress without optional fields", (&Progress{Owner: owned}).Encode())
	show("progress with the other fields", (&Progress{
		Owner: sandbox, Progress: store.DeliveryProgress{Failures: -1}, unknown: unknown,
	}).Encode())
	show("message without optional fields", EncodeDelivery(&store.Delivery{}))
	show("message with attempts of no duration and no status", EncodeDelivery(&store.Delivery{
		Attempts: []store.DeliveryAttempt{{}, {Duration: -time.Second, Status: -1, Failure: "connect"}, {Status: 204}},
	}))
	show("replay without optional fields", EncodeReplay(owned, &store.Replay{}))
	show("replay with the other fields", EncodeReplay(sandbox, &store.Replay{EventID: "evt_001", Dead: true}))
	show("page of deliveries without optional fields",
		encodePage([]store.Delivery{{}, {EventID: "evt_001"}}, maxAnswer))

	show("sealed id key", (&SealedIDKey{MasterID: "2026", Sealed: [keyring.SealedIDKeySize]byte{1, 2, 3}}).Encode())
	show("registration without an address", EncodeNode(store.Registration{}, time.Time{}))
	node := store.Registration{Address: "node-1:8081", PublicKey: [32]byte{1, 2, 3}}
	show("registration", EncodeNode(node, time.Time{}))
	show("registration with a time", EncodeNode(node, kvtest.Time))
	node.Version = "1.2.3"
	show("registration with a version", EncodeNode(node, kvtest.Time))
	show("mark of events that were not measured", (&RetentionMark{At: kvtest.Time}).Encode())
	show("ledger without spans", (&Ledger{}).Encode())
	golden(t, "fields.golden", b.String())
}
