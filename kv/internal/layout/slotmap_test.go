package layout

import (
	"testing"

	"licet/licensing"
)

func TestSlotMap(t *testing.T) {
	m := SlotMap{{1023, 1023, "b"}, {15, 15, "c"}, {10, 20, "b"}}
	read, err := DecodeSlotMap(m.Encode())
	if err != nil {
		t.Fatal(err)
	}
	for slot, want := range map[licensing.Slot]Cell{
		0: Here, 9: Here, 10: "b", 14: "b", 15: "c", 16: "b", 20: "b", 21: Here, 1022: Here, 1023: "b",
	} {
		if got := read.CellOf(slot); got != want {
			t.Errorf("slot %v is in %q, want %q", slot, got, want)
		}
	}
	if zero, err := DecodeSlotMap(SlotMap{}.Encode()); err != nil || !zero.AllHere() || read.AllHere() {
		t.Errorf("%v %v, %v", zero, read, err)
	}
	for _, bad := range []SlotMap{{{5, 4, "b"}}, {{5, 6, Here}}, {{5, licensing.Slots, "b"}}} {
		if _, err := DecodeSlotMap(bad.Encode()); err == nil {
			t.Errorf("%v is read", bad)
		}
	}
}
