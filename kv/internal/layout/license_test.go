package layout

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"

	"licet/kv/internal/kvtest"
	"licet/licensing"
)

// anyTime draws the zero time, times around kvtest.Time, and any others.
func anyTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		after := rapid.OneOf(rapid.Int64Range(-1e4, 1e9), rapid.Int64Range(-1e15, 1e15)).Draw(t, "ms")
		if rapid.Bool().Draw(t, "zero") {
			return time.Time{}
		}
		return time.UnixMilli(kvtest.Time.UnixMilli() + after).UTC()
	})
}

// TestLicenseTimes tries any times of a license and of a device in it, also in the wrong order, since nodes' clocks
// differ. A device that moves to a key of its own is stored like a device that was bound there.
func TestLicenseTimes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		stored := goldenLicense()
		l := &stored.License
		for _, at := range []*time.Time{&l.CreatedAt, &l.ActivatedAt, &l.ExpiresAt, &l.SuspendedAt, &l.RevokedAt} {
			*at = anyTime().Draw(t, "time")
		}
		bound := anyTime().Draw(t, "bound")
		device := licensing.Device{ID: "a", BoundAt: bound, LastSeenAt: time.UnixMilli(bound.UnixMilli() + 5).UTC()}
		stored.Devices = []InlineDevice{NewInlineDevice(&device, l.CreatedAt)}

		got, err := DecodeLicense(kvtest.Key.ID(), stored.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got.License != stored.License {
			t.Fatalf("got %+v, want %+v", got.License, stored.License)
		}
		devices, err := DecodeInline(got.Devices, got.License.CreatedAt)
		if err != nil || devices[0] != device {
			t.Fatalf("got %+v, %v; want %+v", devices, err, device)
		}
		alone, err := got.Devices[0].Alone(got.License.CreatedAt)
		if err != nil || !bytes.Equal(alone, EncodeDevice(&device)) {
			t.Fatalf("on its own it is %x, %v; want %x", alone, err, EncodeDevice(&device))
		}
	})
}

// TestMovedDeviceKeepsNewerFields moves a device of a newer format to a key of
// its own.
func TestMovedDeviceKeepsNewerFields(t *testing.T) {
	device := licensing.Device{ID: "a", Named: true, Name: "A", BoundAt: kvtest.Time.Add(time.Hour),
		LastSeenAt: kvtest.Time.Add(time.Hour)}
	newer := func(b []byte) []byte {
		b = appendString(b, 99, "of a newer node")
		return protowire.AppendFixed64(protowire.AppendTag(b, 98, protowire.Fixed64Type), 42)
	}
	alone, err := InlineDevice(newer(NewInlineDevice(&device, kvtest.Time))).Alone(kvtest.Time)
	if want := newer(EncodeDevice(&device)); err != nil || !bytes.Equal(alone, want) {
		t.Errorf("got %x, %v; want %x", alone, err, want)
	}
	if alone, err := InlineDevice("\xff").Alone(kvtest.Time); !errors.Is(err, ErrMalformed) {
		t.Errorf("a broken one gave %x, %v", alone, err)
	}
}

// TestBrokenRules breaks each rule that the record of a license shows. The check of a good license allocates nothing:
// a node checks each license that it reads or writes.
func TestBrokenRules(t *testing.T) {
	device := NewInlineDevice(&licensing.Device{ID: "a", BoundAt: kvtest.Time}, kvtest.Time)
	licenses := func(max, current, over, inline int, spilled bool) *License {
		s := &License{Spilled: spilled}
		s.License.MaxDevices, s.License.CurrentDevices, s.License.AllowedOver = max, current, over
		for range inline {
			s.Devices = append(s.Devices, device)
		}
		return s
	}
	for _, c := range []struct {
		license *License
		own     int
		want    string
	}{
		{licenses(3, 2, 0, 2, false), NotCounted, ""},
		{licenses(3, 2, 0, 2, false), 0, ""},
		{licenses(0, 20, 0, 0, true), NotCounted, ""},
		{licenses(0, 20, 0, 0, true), 20, ""},
		{licenses(3, 5, 5, 5, false), 0, ""},
		{licenses(3, -1, 0, 0, false), 0, "negative"},
		{licenses(-3, 0, 0, 0, false), 0, "negative"},
		{licenses(3, 0, -1, 0, false), 0, "negative"},
		{licenses(3, 1, 0, 1, true), 1, "spilled"},
		{licenses(3, 1, 0, 1, false), 1, "spilled"},
		{licenses(0, 17, 0, 17, false), 0, "inline_limit"},
		{licenses(3, 2, 0, 1, false), NotCounted, "device_count"},
		{licenses(0, 20, 0, 0, true), 19, "device_count"},
		{licenses(1, 2, 0, 2, false), 0, "device_limit"},
		{licenses(1, 20, 19, 0, true), NotCounted, "device_limit"},
	} {
		got := ""
		c.license.EachBrokenRule(c.own, func(rule, _ string, _ ...any) { got += rule })
		if got != c.want {
			t.Errorf("%+v breaks %q, want %q", c.license, got, c.want)
		}
		if rule := c.license.BrokenRule(); c.own == NotCounted && rule != c.want {
			t.Errorf("the first broken rule of %+v is %q, want %q", c.license, rule, c.want)
		}
	}
	good := licenses(3, 2, 0, 2, false)
	if n := testing.AllocsPerRun(100, func() { good.BrokenRule() }); n != 0 {
		t.Errorf("the check of a good license allocates %v times", n)
	}
}
