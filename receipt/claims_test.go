package receipt_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"licet/receipt"
)

// TestReceiptEncoding signs receipts with any members, and compares their content with what encoding/json makes of
// them.
func TestReceiptEncoding(t *testing.T) {
	texts := rapid.OneOf(
		rapid.String(),
		rapid.StringMatching("[ -~]*"),
		rapid.SampledFrom([]string{"", `"`, `\`, "<a href='?b&c'>", "\x7f", "\u2028\u2029", "\b\f\n\r\t\x00\x1f", "caf\u00e9",
			"\xff", "a\xc3", "\U0001F600"}),
	)
	entitlements := rapid.MapOf(texts, rapid.Map(rapid.SampledFrom([]string{"true", "5", `"größte"`, `"<b>"`, ` 1`}),
		func(value string) json.RawMessage { return json.RawMessage(value) }))
	signer := receipt.NewSigner(testKey("receipt"))
	rapid.Check(t, func(draw *rapid.T) {
		var r receipt.Receipt
		fields := reflect.ValueOf(&r).Elem()
		for i := range fields.NumField() {
			name := fields.Type().Field(i).Name
			switch field := fields.Field(i).Addr().Interface().(type) {
			case *string:
				*field = texts.Draw(draw, name)
			case **string:
				*field = rapid.Ptr(texts, true).Draw(draw, name)
			case *int:
				*field = rapid.Int().Draw(draw, name)
			case *int64:
				*field = rapid.Int64().Draw(draw, name)
			case *bool:
				*field = rapid.Bool().Draw(draw, name)
			case *map[string]json.RawMessage:
				*field = entitlements.Draw(draw, name)
			default:
				draw.Fatalf("the test has no values for the field %s", name)
			}
		}
		want, err := json.Marshal(r)
		if err != nil {
			draw.Fatal(err)
		}
		document, err := r.Sign(signer)
		if err != nil {
			draw.Fatal(err)
		}
		if got := part(t, document, 1); got != string(want) {
			draw.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// TestNoEntitlements: a receipt without entitlements shows an empty object, and not null.
func TestNoEntitlements(t *testing.T) {
	var r receipt.Receipt
	r.Entitlements = map[string]json.RawMessage{}
	empty := must(t)(r.Sign(receipt.NewSigner(testKey("receipt"))))
	r.Entitlements = nil
	if none := must(t)(r.Sign(receipt.NewSigner(testKey("receipt")))); none != empty {
		t.Errorf("got %s, want %s", none, empty)
	}
}
