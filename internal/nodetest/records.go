package nodetest

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/kv"
	"licet/licensing"
	"licet/node"
	"licet/node/service"
	"licet/node/store"
)

// Once returns an Idempotency-Key with a request.
func Once(key, request string) *node.Once {
	hash := sha256.Sum256([]byte(key))
	return &node.Once{Hash: string(hash[:16]), Fingerprint: sha256.Sum256([]byte(request))}
}

// OrderOnce returns a new order with an Idempotency-Key.
func OrderOnce(key, request string) service.NewOrder {
	in := NewOrder(100)
	in.Once = Once(key, request)
	return in
}

// FeedOf closes the epoch and reads all events of an owner.
func FeedOf(t *testing.T, db *kv.Store, owner licensing.Owner) []store.RecordedEvent {
	t.Helper()
	WantError(t, db.CloseEpoch(Context(t)), nil)
	var all []store.RecordedEvent
	for page := (store.FeedPage{Limit: 100}); ; {
		got, err := db.ReadEvents(Context(t), owner, page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Events...)
		if page.After = got.Next; !got.More {
			return all
		}
	}
}

// WantHistory compares the events of a record with lines: each has a number, a type, an actor
// and perhaps a device.
func WantHistory(t *testing.T, store *kv.Store, ref licensing.Ref, want ...string) []store.RecordedEvent {
	t.Helper()
	events := HistoryOf(t, store, ref)
	if diff := cmp.Diff(want, Lines(events)); diff != "" {
		t.Errorf("events of %s (-want +got):\n%s", ref.ID, diff)
	}
	return events
}

// Lines returns events in the form that WantHistory compares.
func Lines(events []store.RecordedEvent) []string {
	var list []string
	for _, e := range events {
		line := fmt.Sprintf("%d %s %s", e.Sequence, e.Type, e.Actor)
		if e.Device != nil {
			line += " " + e.Device.ID
		}
		list = append(list, line)
	}
	return list
}

// NewOrder returns an order of an amount in US cents.
func NewOrder(amount int64) service.NewOrder {
	return service.NewOrder{ProductID: "pro", Amount: amount, Currency: "USD"}
}

// MustActivate binds a device.
func MustActivate(t *testing.T, n *service.Service, key licensing.LicenseKey, device string) licensing.Result {
	t.Helper()
	result, err := Activate(Context(t), n, key, device)
	if err != nil {
		t.Fatalf("activate %s: %v", device, err)
	}
	return result
}

// HistoryOf reads all events of a record, the oldest first.
func HistoryOf(t *testing.T, db *kv.Store, ref licensing.Ref) []store.RecordedEvent {
	t.Helper()
	var all []store.RecordedEvent
	for page := (store.HistoryPage{Limit: 100}); ; {
		got, err := db.History(Context(t), ref, page)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, got.Events...)
		if page.Before = got.Next; got.Next == "" {
			slices.Reverse(all)
			return all
		}
	}
}

// SandboxPayment returns a payment of the sandbox with a reference.
func SandboxPayment(reference string) licensing.Payment {
	return licensing.Payment{Provider: licensing.ProviderSandbox, Reference: reference}
}
