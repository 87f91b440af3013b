package handlers

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"licet/licensing"
)

// TestAppendedAnswer: an appender writes the same bytes as encoding/json.
func TestAppendedAnswer(t *testing.T) {
	t.Parallel()
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching("[ -~]*"),
		rapid.SampledFrom([]string{"", "\"", "\\", "<a href='?b&c'>", "\x7f", "\u2028\u2029", "\b\f\n\r\t\x00\x1f",
			"caf\u00e9", "\xff", "a\xc3", "\U0001F600"}),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }),
	)
	moments := rapid.Custom(func(t *rapid.T) timestamp {
		if rapid.Bool().Draw(t, "zero") {
			return timestamp{}
		}
		milliseconds := rapid.Int64Range(-62_135_596_800_000, 253_402_300_799_999).Draw(t, "milliseconds")
		zone := time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone"))
		return timestamp(time.UnixMilli(milliseconds).In(zone))
	})
	rapid.Check(t, func(t *rapid.T) {
		moment := moments.Draw(t, "moment")
		if want := time.Time(moment).UTC().Format(`"` + timeFormat + `"`); !time.Time(moment).IsZero() &&
			string(moment.appendTo(nil)) != want {
			t.Fatalf("got %s, want %s", moment.appendTo(nil), want)
		}
		answer := &activation{
			LicenseKey:     texts.Draw(t, "license_key"),
			Status:         licensing.Status(texts.Draw(t, "status")),
			ProductID:      texts.Draw(t, "product_id"),
			DeviceID:       texts.Draw(t, "device_id"),
			MaxDevices:     rapid.Int().Draw(t, "max_devices"),
			CurrentDevices: rapid.Int().Draw(t, "current_devices"),
			ActivatedAt:    moments.Draw(t, "activated_at"),
			ExpiresAt:      moments.Draw(t, "expires_at"),
			Mode:           licensing.Mode(texts.Draw(t, "mode")),
			AccountID:      texts.Draw(t, "account_id"),
			Entitlements:   json.RawMessage(rapid.SampledFrom([]string{"{}", `{"a":true,"b":"x"}`}).Draw(t, "entitlements")),
			Receipt:        rapid.StringMatching("([0-9A-Za-z_.-]{9})?").Draw(t, "receipt"),
		}
		if rapid.Bool().Draw(t, "named") {
			name := texts.Draw(t, "device_name")
			answer.DeviceName = &name
		}
		want, err := encode(successEnvelope{Message: "success", Data: answer})
		if err != nil {
			t.Fatal(err)
		}
		if got := appendSuccess([]byte("before"), answer); string(got) != "before"+string(want) {
			t.Fatalf("got  %q\nwant %q", got, want)
		}
	})
}
