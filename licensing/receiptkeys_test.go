package licensing_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

// TestReceiptKeysRotate: a new receipt key rests before it signs, and the key before stays in the set as long as one of
// its receipts may be valid.
func TestReceiptKeysRotate(t *testing.T) {
	r := &licensing.Record{ActsByTime: true}
	begin := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	do := func(c licensing.Command, now time.Time) *licensing.ReceiptKeys {
		t.Helper()
		result, err := licensing.Apply(r, c, now)
		if err != nil {
			t.Fatal(err)
		}
		return result.ReceiptKeys
	}
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, begin); err == nil || r.Changed {
		t.Errorf("keys that do not exist were rotated: %v", err)
	}
	r.Documents = licensing.ClocksUnknown()
	if _, err := licensing.Apply(r, licensing.MakeReceiptKeys{Owner: shop}, begin); err != licensing.ErrClockInDoubt ||
		r.Changed {
		t.Errorf("made by a clock that is not compared: %v, changed %v", err, r.Changed)
	}
	r.Documents = &licensing.DocumentClock{Ahead: time.Hour, Apart: time.Hour}
	do(licensing.MakeReceiptKeys{Owner: shop}, begin.Add(time.Hour)) // dated by the earliest clock
	r.Documents = nil
	if k := do(licensing.MakeReceiptKeys{Owner: shop}, begin.Add(time.Hour)); len(k.Keys) != 1 ||
		!k.Keys[0].CreatedAt.Equal(begin) || k.Signing(begin.Add(-time.Hour)).Number != 1 {
		t.Errorf("made twice: %+v", k)
	}
	second := begin.Add(time.Hour)
	do(licensing.RotateReceiptKeys{}, second)
	if k := do(licensing.RotateReceiptKeys{}, second.Add(9*time.Minute)); len(k.Keys) != 2 {
		t.Errorf("rotated while the newest key rests: %+v", k)
	}
	k := r.ReceiptKeys
	for at, want := range map[time.Duration]uint64{0: 1, 10*time.Minute - 1: 1, 10 * time.Minute: 2} {
		if got := k.Signing(second.Add(at)).Number; got != want {
			t.Errorf("after %v signs %d, want %d", at, got, want)
		}
	}
	gone := second.Add(10*time.Minute + licensing.MaxReceiptValidity + time.Hour)
	if listed := k.Listed(gone.Add(-1)); len(listed) != 2 || !listed[0].EndsAt.Equal(gone) ||
		!listed[1].EndsAt.IsZero() {
		t.Errorf("the set is %+v", listed)
	}
	if listed := k.Listed(gone); len(listed) != 1 || listed[0].Number != 2 {
		t.Errorf("the set is %+v", listed)
	}
	r.Documents = licensing.ClocksUnknown()
	same := r.ReceiptKeys
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, gone); err != licensing.ErrClockInDoubt ||
		r.ReceiptKeys != same {
		t.Errorf("rotated by a clock that is not compared: %v, %+v", err, r.ReceiptKeys)
	}
	r.Documents = nil
	if r.ActsByTime = !r.NeedsClock(licensing.RotateReceiptKeys{}); r.ActsByTime {
		t.Error("a rotation does not need the clock")
	}
	if _, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, gone.Add(-2*time.Hour)); err !=
		licensing.ErrClockInDoubt || r.ReceiptKeys != same {
		t.Errorf("rotated by a clock that may be behind: %v, %+v", err, r.ReceiptKeys)
	}
	r.ActsByTime = true
	if k := do(licensing.RotateReceiptKeys{}, gone); len(k.Keys) != 2 || k.Keys[1].Number != 3 {
		t.Errorf("rotated once the first has gone: %+v", k)
	}
	now := gone
	for range licensing.MaxReceiptKeys - 2 {
		now = now.Add(time.Hour)
		do(licensing.RotateReceiptKeys{}, now)
	}
	before := r.ReceiptKeys
	_, err := licensing.Apply(r, licensing.RotateReceiptKeys{}, now.Add(time.Hour))
	if licensing.ReasonOf(err) != licensing.ReasonAPIKeyLimit || r.ReceiptKeys != before {
		t.Errorf("%v, and the keys are %+v", err, r.ReceiptKeys)
	}
}

// TestSealedRoot: a root secret opens under the master key that seals it, for its owner only, and the keys that are
// derived from it never change.
func TestSealedRoot(t *testing.T) {
	ring := func(lines ...string) licensing.MasterRing {
		t.Helper()
		ring, err := licensing.ParseMasterRing(strings.Join(lines, "\n"))
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	first, second := "m1:"+strings.Repeat("A", 43)+"=", "m2:"+strings.Repeat("B", 42)+"A="
	secret := licensing.NewRootSecret([licensing.RootSecretSize]byte(bytes.Repeat([]byte{7}, licensing.RootSecretSize)))
	sealed, err := ring(first, second).SealRoot(shop, secret, [licensing.RootNonceSize]byte{9})
	if err != nil {
		t.Fatal(err)
	}
	if opened, err := ring(second, first).OpenRoot(shop, sealed); err != nil || opened != secret {
		t.Errorf("opened as %v, %v", opened, err)
	}
	other := shop
	other.Mode = licensing.Test
	if _, err := ring(first).OpenRoot(other, sealed); err == nil {
		t.Error("opened for another owner")
	}
	for _, r := range []licensing.MasterRing{ring(second), ring("m1:" + strings.Repeat("B", 42) + "A=")} {
		if _, err := r.OpenRoot(shop, sealed); err == nil {
			t.Errorf("opened with %v", r)
		}
	}
	root, key := secret.RootKey(), secret.ReceiptKey(licensing.ReceiptKey{Number: 1})
	message := []byte("message")
	if bytes.Equal(root, key) || bytes.Equal(key, secret.ReceiptKey(licensing.ReceiptKey{Number: 2})) ||
		!ed25519.Verify(root.Public().(ed25519.PublicKey), message, ed25519.Sign(root, message)) {
		t.Error("the keys are equal, or do not sign")
	}
	if text := secret.String(); text != "root secret" {
		t.Errorf("prints as %s", text)
	}
}
