package kvtest

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

var (
	// Keys, Time, Key, Owner, OtherOwner, Hex and ULID occur in the golden values.
	Keys = keyring.NewLicenseKeys(keyring.NewKeyCheck([]byte("check key")),
		keyring.NewIDKey([keyring.IDKeySize]byte([]byte("id key of a test"))))
	Time       = time.Date(2026, 11, 20, 11, 12, 13, 456e6, time.UTC)
	Key        = Keys.Mint("ACME", Owner, [keyring.LicenseKeyEntropy]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
	Owner      = licensing.Owner{AccountID: "acct_01jd4", Mode: licensing.Live}
	OtherOwner = licensing.Owner{AccountID: "acct_lab", Mode: licensing.Test}
	Hex        = strings.Repeat("0123456789abcdef", 4)
)

// ULID is the text of a ULID.
const ULID = "01JD4Q8X2M7R3N5T9V1W4Y6Z8A"

// License returns a license with every field set.
func License() licensing.License {
	return licensing.License{
		Key: Key, Owner: Owner, ProductID: "pro", OrderNo: "ord_VQ01JD4Q8X2M7R3N5T9V1W4Y6Z8A",
		MaxDevices: 1, CurrentDevices: 3, AllowedOver: 4,
		Validity:  licensing.Period{Years: 1, Months: 2, Days: 3, Clock: 4 * time.Hour},
		CreatedAt: Time, ActivatedAt: Time.Add(time.Second), ExpiresAt: Time.Add(2 * time.Second),
		SuspendedAt: Time.Add(3 * time.Second), RevokedAt: Time.Add(4 * time.Second),
		EndRecorded: Time.Add(5 * time.Second),
		StateReason: "chargeback", SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 5},
		Removals: licensing.Removals{Month: 24322, Count: 2},
	}
}

// Devices returns devices that differ in every field.
func Devices() []licensing.Device {
	return []licensing.Device{
		{ID: Hex, Name: "Ada's laptop", Named: true, BoundAt: Time, LastSeenAt: Time.Add(time.Minute)},
		{ID: "ABC", Named: true, BoundAt: Time, LastSeenAt: Time},
		{ID: "ab", BoundAt: Time, LastSeenAt: Time.Add(-time.Minute)},
	}
}

// Events returns events of the license that differ in every possible way.
func Events() []licensing.Event {
	last := License()
	suspended, fewer := last, last
	suspended.SuspendedAt, fewer.CurrentDevices = Time.Add(time.Hour), 1
	suspended.Sequence, fewer.Sequence, last.Sequence = 5, 6, 7
	return []licensing.Event{
		{Type: licensing.EventLicenseSuspended, At: Time, Sequence: 5, Actor: "key_01", License: &suspended},
		{Type: licensing.EventDeviceBound, At: Time.Add(time.Second), Sequence: 6, Actor: licensing.EndUser,
			License: &fewer, Device: &Devices()[0]},
		{Type: licensing.EventDeviceRemoved, At: Time.Add(-time.Second), Sequence: 7, Actor: licensing.System,
			License: &last, Device: &Devices()[0]},
	}
}

// Delivery returns a message with two failed attempts.
func Delivery() store.Delivery {
	return store.Delivery{
		EventID: "evt_001", Type: licensing.EventOrderPaid, Status: store.DeliveryPending, Answer: "no such table",
		Next: Time.Add(time.Hour),
		Attempts: []store.DeliveryAttempt{
			{At: Time, Duration: 1234 * time.Millisecond, Status: 500, Failure: "status"},
			{At: Time.Add(time.Minute), Duration: 15 * time.Second, Failure: "timeout"},
		},
	}
}

// Replay returns a replay that is under way.
func Replay() store.Replay {
	return store.Replay{ID: ULID, After: "evt_001", Until: "evt_003", Place: "evt_002"}
}

// Must returns a function that returns value, and fails the test at a non-nil err.
func Must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// Equal fails the test where the values differ. A nil slice equals an empty one.
func Equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// NewerField is a field of a value that only a newer build knows.
func NewerField() []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "of a newer node")
}
