package kv

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/licensing"
	"licet/node/store"
)

var (
	testCheck = licensing.NewKeyCheck([]byte("check key"))
	testTime  = time.Date(2026, 11, 20, 11, 12, 13, 456e6, time.UTC)
)

var (
	goldenKey   = testCheck.Mint("ACME", '0', [licensing.LicenseKeyEntropy]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13})
	goldenOwner = licensing.Owner{AccountID: "acct_01jd4", Mode: licensing.Live}
	goldenOther = licensing.Owner{AccountID: "acct_lab", Mode: licensing.Test}
	goldenHex   = strings.Repeat("0123456789abcdef", 4)
)

const goldenULID = "01JD4Q8X2M7R3N5T9V1W4Y6Z8A"

func goldenFacts() licensing.License {
	return licensing.License{
		Key: goldenKey, Owner: goldenOwner, ProductID: "pro", OrderNo: "ord_001JD4Q8X2M7R3N5T9V1W4Y6Z8A",
		MaxDevices: 1, CurrentDevices: 3, AllowedOver: 4,
		Validity:  licensing.Period{Years: 1, Months: 2, Days: 3, Clock: 4 * time.Hour},
		CreatedAt: testTime, ActivatedAt: testTime.Add(time.Second), ExpiresAt: testTime.Add(2 * time.Second),
		SuspendedAt: testTime.Add(3 * time.Second), RevokedAt: testTime.Add(4 * time.Second), EndRecorded: testTime.Add(5 * time.Second),
		StateReason: "chargeback", SelfService: licensing.SelfService{Allowed: true, RemovalsPerMonth: 5},
		Removals: licensing.Removals{Month: 24322, Count: 2},
	}
}

var goldenDevices = []licensing.Device{
	{ID: goldenHex, Name: "Ada's laptop", Named: true, BoundAt: testTime, LastSeenAt: testTime.Add(time.Minute)},
	{ID: "ABC", Named: true, BoundAt: testTime, LastSeenAt: testTime},
	{ID: "ab", BoundAt: testTime, LastSeenAt: testTime.Add(-time.Minute)},
}

// goldenEvents are events of the license that tell of what differs in every way.
func goldenEvents() []licensing.Event {
	last := goldenFacts()
	suspended, fewer := last, last
	suspended.SuspendedAt, fewer.CurrentDevices = testTime.Add(time.Hour), 1
	suspended.Sequence, fewer.Sequence, last.Sequence = 5, 6, 7
	return []licensing.Event{
		{Type: licensing.EventLicenseSuspended, At: testTime, Sequence: 5, Actor: "key_01", License: &suspended},
		{Type: licensing.EventDeviceBound, At: testTime.Add(time.Second), Sequence: 6, Actor: licensing.EndUser, License: &fewer, Device: &goldenDevices[0]},
		{Type: licensing.EventDeviceRemoved, At: testTime.Add(-time.Second), Sequence: 7, Actor: licensing.System, License: &last, Device: &goldenDevices[0]},
	}
}

func goldenDelivery() store.Delivery {
	return store.Delivery{
		EventID: "evt_001", Type: licensing.EventOrderPaid, Status: store.DeliveryPending, Answer: "no such table", Next: testTime.Add(time.Hour),
		Attempts: []store.DeliveryAttempt{
			{At: testTime, Duration: 1234 * time.Millisecond, Status: 500, Failure: "status"},
			{At: testTime.Add(time.Minute), Duration: 15 * time.Second, Failure: "timeout"},
		},
	}
}

func goldenReplay() store.Replay {
	return store.Replay{ID: goldenULID, After: "evt_001", Until: "evt_003", Place: "evt_002"}
}

func must[T any](value T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func equal(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(),
		cmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// newerField is a field of a value that only a newer build knows.
func newerField() []byte {
	return protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "of a newer node")
}
