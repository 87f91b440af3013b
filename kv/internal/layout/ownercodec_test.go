package layout

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"licet/kv/internal/kvtest"
	"licet/licensing"
)

// anyID draws texts that are ids, that nearly are, and any others.
func anyID() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`(acct_|ord_0|ord_|)[0-9a-hjkmnp-tv-z]{25,27}`),
		rapid.StringMatching(`(acct_|ord_0|ord_|)[0-7][0-9A-HJKMNP-TV-Z]{25}`),
		rapid.StringMatching(`(acct_|ord_..)[0-9A-Za-z]{26}`),
		rapid.StringMatching(`(acct_|ord_..)[0-9]{26}`),
		rapid.StringMatching(`(acct_)?[0-9a-z_]{0,60}`),
		rapid.String(),
	)
}

// oddIDs are texts that look as if they could be packed, and some that can.
func oddIDs() []string {
	lower := strings.ToLower(kvtest.ULID)
	return []string{
		"a", "acct_", "ord_", "ord_0", "acct", "acct_acct_a", "ACCT_" + lower, "\xff", "acct_\x00", "acct_é",
		kvtest.ULID, lower, "acct_" + kvtest.ULID, "acct_" + lower, "acct_" + lower[:25], "acct_" + lower + "0",
		"acct_" + lower[:25] + "A", "acct_" + strings.ToUpper(lower[:25]) + "a", "acct_" + lower[:25] + "i",
		"acct_" + lower[:25] + "u",
		"acct_" + strings.Repeat("7", 26), "acct_" + strings.Repeat("0", 26), "acct_7" + strings.Repeat("z", 25),
		"acct_8" + strings.Repeat("0", 25),
		"ord_0" + kvtest.ULID, "ord_Z" + kvtest.ULID, "ord_0" + lower, "ord_a" + lower, "ord_\xff" + kvtest.ULID,
		"ord_é" + kvtest.ULID,
		"ord_0" + lower[:13] + kvtest.ULID[13:], "ord_0" + kvtest.ULID[:25] + "O", "ord_08" + kvtest.ULID[1:],
		"ord_7" + kvtest.ULID[:25],
		"acct_01jd4q8x2m7r3n5t9v1w4y6z\x008", "acct_01jd4q8x2m7r3n5t9v1w4y6\xff\xfea",
	}
}

// decodeFields reads a message of an owner in field 1 and of an order number
// in field 2 or 3.
func decodeFields(message []byte) (o licensing.Owner, orderNo string, err error) {
	err = decodeMessage(message, func(f Field) (err error) {
		switch f.Num {
		case 1:
			o, err = f.owner()
		case 2:
			orderNo, err = f.orderNo()
		case 3:
			orderNo = f.string()
		}
		return err
	})
	return o, orderNo, err
}

func checkFields(t interface{ Fatalf(string, ...any) }, o licensing.Owner, orderNo string) {
	message := appendOrderNo(appendOwner(nil, 1, o), 2, 3, orderNo)
	gotOwner, gotNo, err := decodeFields(message)
	if err != nil || gotOwner != o || gotNo != orderNo {
		t.Fatalf("got %q and %q, %v; want %q and %q", gotOwner, gotNo, err, o, orderNo)
	}
}

// TestPackedIDs tries any ids: each comes back to the byte, whether it was
// packed or not.
func TestPackedIDs(t *testing.T) {
	for _, id := range oddIDs() {
		for _, mode := range []licensing.Mode{licensing.Test, licensing.Live} {
			checkFields(t, licensing.Owner{AccountID: id, Mode: mode}, id)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]licensing.Mode{licensing.Test, licensing.Live}).Draw(t, "mode")
		checkFields(t, licensing.Owner{AccountID: anyID().Draw(t, "account"), Mode: mode}, anyID().Draw(t, "order"))
	})
}

// TestPackedSizes checks what the packing is for: the sizes.
func TestPackedSizes(t *testing.T) {
	for account, want := range map[string]int{
		"acct_" + strings.ToLower(kvtest.ULID): 2 + 1 + 16,
		"acct_" + kvtest.ULID:                  2 + 1 + 26,
		"acct_acme":                            2 + 1 + 4,
		"acme":                                 2 + 1 + 4,
	} {
		if got := len(appendOwner(nil, 1, licensing.Owner{AccountID: account, Mode: licensing.Live})); got != want {
			t.Errorf("%s takes %d bytes, want %d", account, got, want)
		}
	}
	for orderNo, want := range map[string]int{
		"ord_VQ" + kvtest.ULID:                  2 + 2 + 16,
		"ord_VQ" + strings.ToLower(kvtest.ULID): 2 + 32,
		"":                                      0,
	} {
		if got := len(appendOrderNo(nil, 2, 3, orderNo)); got != want {
			t.Errorf("%q takes %d bytes, want %d", orderNo, got, want)
		}
	}
}

// TestBrokenIDs: decoding refuses bytes that no id is encoded as, above all an unknown owner.
func TestBrokenIDs(t *testing.T) {
	sixteen := strings.Repeat("x", 16)
	for _, owner := range []string{
		"", "\x00a", "\x03a", "\x04a", "\x07a", "\x0d" + sixteen, "\x0e" + sixteen, "\xff" + sixteen,
		"\x09", "\x09" + sixteen[1:], "\x0a" + sixteen + "x", "\x0a" + sixteen + sixteen,
	} {
		if o, _, err := decodeFields(appendBytes(nil, 1, []byte(owner))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q gave the owner %q, %v", owner, o, err)
		}
	}
	if o, _, err := decodeFields(appendUint(nil, 1, 1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a number gave the owner %q, %v", o, err)
	}
	if o, err := DecodeOwner(append([]byte{formatVersion}, appendBytes(nil, 1, []byte{storedLive})...)); !errors.Is(err,
		ErrMalformed) {
		t.Errorf("an empty account gave the owner %q, %v", o, err)
	}
	for _, orderNo := range []string{"", "V", "VQ", "VQ" + sixteen[1:], "VQ" + sixteen + "x"} {
		if _, got, err := decodeFields(appendBytes(nil, 2, []byte(orderNo))); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q gave the order number %q, %v", orderNo, got, err)
		}
	}
	if _, got, err := decodeFields(appendUint(nil, 2, 1)); !errors.Is(err, ErrMalformed) {
		t.Errorf("a number gave the order number %q, %v", got, err)
	}
}

// FuzzOwner reads any bytes as an owner and an order number, and stores any text
// as both.
func FuzzOwner(f *testing.F) {
	for _, id := range oddIDs() {
		f.Add([]byte(id))
		f.Add(appendOrderNo(appendOwner(nil, 1, licensing.Owner{AccountID: id, Mode: licensing.Test}), 2, 3, id))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		checkFields(t, licensing.Owner{AccountID: string(b), Mode: licensing.Live}, string(b))
		o, orderNo, err := decodeFields(b)
		if err == nil && o.Mode != "" {
			checkFields(t, o, orderNo)
		}
	})
}
