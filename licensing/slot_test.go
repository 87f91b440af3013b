package licensing_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"licet/licensing"
)

// slotText computes the slot of an owner in a second way: the first ten bits of the hash, as a big number.
func slotText(owner licensing.Owner) string {
	sum := sha256.Sum256([]byte("licet slot\x00" + owner.AccountID + "\x00" + string(owner.Mode)))
	n := new(big.Int).Rsh(new(big.Int).SetBytes(sum[:]), 256-10).Int64()
	const characters = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	return string([]byte{characters[n/32], characters[n%32]})
}

// TestSlotsAreFrozen: license keys and ids contain slots and are kept for years. No line here may ever change.
func TestSlotsAreFrozen(t *testing.T) {
	for _, c := range []struct {
		account string
		mode    licensing.Mode
		slot    licensing.Slot
		text    string
	}{
		{"acct_acme", licensing.Test, 887, "VQ"},
		{"acct_acme", licensing.Live, 1016, "ZR"},
		{"acct_01jd4q8x2m7r3n5t9v1w4y6z8a", licensing.Test, 313, "9S"},
		{"acct_01jd4q8x2m7r3n5t9v1w4y6z8a", licensing.Live, 347, "AV"},
		{"acct_a", licensing.Test, 127, "3Z"},
		{"acct_a", licensing.Live, 935, "X7"},
		{"acct_0", licensing.Test, 510, "FY"},
		{"acct_0", licensing.Live, 450, "E2"},
		{"acct_other", licensing.Test, 499, "FK"},
		{"acct_other", licensing.Live, 991, "YZ"},
		{"acct_lab", licensing.Test, 14, "0E"},
		{"acct_lab", licensing.Live, 142, "4E"},
		{"acct_under_score", licensing.Test, 676, "N4"},
		{"acct_under_score", licensing.Live, 979, "YK"},
		{"acct_" + strings.Repeat("z", 59), licensing.Test, 190, "5Y"},
		{"acct_" + strings.Repeat("z", 59), licensing.Live, 167, "57"},
	} {
		owner := licensing.Owner{AccountID: c.account, Mode: c.mode}
		if got := licensing.SlotOf(owner); got != c.slot || got.String() != c.text || slotText(owner) != c.text {
			t.Errorf("%v has slot %d, %v, want %d, %s", owner, got, got, c.slot, c.text)
		}
	}
}

// TestSlotsSortAsTheirTexts also finds each text once.
func TestSlotsSortAsTheirTexts(t *testing.T) {
	var texts []string
	for slot := range licensing.Slot(licensing.Slots) {
		texts = append(texts, slot.String())
	}
	if !slices.IsSorted(texts) || len(slices.Compact(slices.Clone(texts))) != licensing.Slots {
		t.Errorf("the texts of slots are not sorted, or not unique: %v", texts)
	}
}

// TestSlotsAreEven: accounts spread over all slots. The bounds are about six standard deviations of a mean of 64.
func TestSlotsAreEven(t *testing.T) {
	var counts [licensing.Slots]int
	for i := range 64 * licensing.Slots / 2 {
		for _, mode := range []licensing.Mode{licensing.Test, licensing.Live} {
			counts[licensing.SlotOf(licensing.Owner{AccountID: fmt.Sprintf("acct_%08d", i), Mode: mode})]++
		}
	}
	if least, most := slices.Min(counts[:]), slices.Max(counts[:]); least < 64-48 || most > 64+48 {
		t.Errorf("slots have %d to %d of %d owners, want about 64", least, most, 64*licensing.Slots)
	}
}

// TestSlotOfAllocatesNothing: each record that is created takes its owner's slot.
func TestSlotOfAllocatesNothing(t *testing.T) {
	owner := licensing.Owner{AccountID: "acct_" + strings.Repeat("z", 59), Mode: licensing.Live}
	if n := testing.AllocsPerRun(100, func() { licensing.SlotOf(owner) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestIDsContainTheSlot: each kind of id contains the slot of its owner, and of no other owner.
func TestIDsContainTheSlot(t *testing.T) {
	const ulid = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	acme := licensing.Owner{AccountID: "acct_acme", Mode: licensing.Test}
	own := licensing.SlotOf(acme)
	other := licensing.SlotOf(licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live})
	for id, want := range map[string]string{
		licensing.NewOrderNo(acme, ulid):    "ord_VQ01ARZ3NDEKTSV4RRFFQ69G5FAV",
		licensing.NewEndpointID(acme, ulid): "we_vq01arz3ndektsv4rrffq69g5fav",
		licensing.NewAPIKeyID(acme, ulid):   "key_vq01arz3ndektsv4rrffq69g5fav",
	} {
		if id != want || !own.In(id) || other.In(id) {
			t.Errorf("%s, want %s; in its slot: %v, in another: %v", id, want, own.In(id), other.In(id))
		}
	}
	if !licensing.ValidEndpointID("we_vq01arz3ndektsv4rrffq69g5fav") ||
		!licensing.ValidAPIKeyID("key_vq01arz3ndektsv4rrffq69g5fav") {
		t.Error("an id is not in its own form")
	}
	for _, id := range []string{"", "_", "ord_", "ord_V", "ord_Q", "ordVQ", "VQ", "ord_ VQ", "ord_QV", "ord_V\x00"} {
		if own.In(id) {
			t.Errorf("%q is in a slot", id)
		}
	}
}
