package licensing

import (
	"crypto/sha256"
	"strings"
)

// Slot is one of the 1,024 parts that all data is divided into. All records of an account and mode are in one slot, so
// a transaction needs one slot only, and a slot can move to another store cluster. The ids of records contain their
// slot, so that finding the cluster of an id needs no look-up.
type Slot uint16

// Slots is the number of slots.
const Slots = 1 << 10

// SlotLength is the length of a slot in an id: two Crockford characters.
const SlotLength = 2

// SlotOf returns the slot of an account and mode: the first ten bits of a SHA-256. Ids contain the slot, so SlotOf must
// never change.
func SlotOf(owner Owner) Slot {
	// Neither part can hold a zero byte, so no two owners share an input.
	input := make([]byte, 0, 96)
	input = append(input, "licet slot\x00"...)
	input = append(input, owner.AccountID...)
	input = append(input, 0)
	input = append(input, owner.Mode...)
	sum := sha256.Sum256(input)
	return LeadingSlot(sum[0], sum[1])
}

// leadingSlot returns the first ten bits of two bytes.
func LeadingSlot(first, second byte) Slot { return Slot(first)<<2 | Slot(second>>6) }

// String returns the slot as ids contain it: two Crockford characters, 00 to ZZ, which sort as the slots do.
func (s Slot) String() string { return string([]byte{Crockford[s>>5&31], Crockford[s&31]}) }

// In reports whether an id contains the slot; see [SlotIn].
func (s Slot) In(id string) bool {
	slot, ok := SlotIn(id)
	return ok && slot == s
}

// SlotIn returns the slot that an id contains after its first underscore: an order number, or the id of an endpoint, an
// API key or an event. Ids in lower case contain the slot in lower case.
func SlotIn(id string) (slot Slot, ok bool) {
	_, rest, _ := strings.Cut(id, "_")
	if len(rest) < SlotLength {
		return 0, false
	}
	return ParseSlot(strings.ToUpper(rest[:SlotLength]))
}

// ParseSlot parses the two characters of [Slot.String].
func ParseSlot(text string) (slot Slot, ok bool) {
	if len(text) != SlotLength {
		return 0, false
	}
	high, low := strings.IndexByte(Crockford, text[0]), strings.IndexByte(Crockford, text[1])
	return Slot(high<<5 | low), high >= 0 && low >= 0
}
