package keyspace

import (
	"strings"

	"licet/licensing"
)

// slotPrefixSize is how long the part of a key is that InSlot adds.
const slotPrefixSize = len(Prefix) + licensing.SlotLength + len("/")

// InSlot returns the key of a slot's data, by its path below the slot. All keys of an owner are in the slot of the
// owner, so that they are one range.
func InSlot(slot licensing.Slot, path string) string { return Prefix + slot.String() + "/" + path }

// OfOwner returns an owner's key in a family that has one key for each owner, or the beginning of the owner's keys.
func OfOwner(owner licensing.Owner, family string) string {
	return InSlot(licensing.SlotOf(owner), family+OwnerPath(owner))
}

// inSlotOf returns a key in the slot that an id contains. An id without a slot is no record's: its key is in slot 00.
func inSlotOf(id, path string) string {
	slot, _ := licensing.SlotIn(id)
	return InSlot(slot, path)
}

// CutSlot parses the slot at the beginning of a key, and returns the path below the slot. ok is false for the keys of
// the cell.
func CutSlot(key string) (slot licensing.Slot, path string, ok bool) {
	rest, ok := strings.CutPrefix(key, Prefix)
	if !ok || len(rest) <= licensing.SlotLength || rest[licensing.SlotLength] != '/' {
		return 0, "", false
	}
	slot, ok = licensing.ParseSlot(rest[:licensing.SlotLength])
	return slot, rest[licensing.SlotLength+1:], ok
}

// CutFamily returns the part of a key behind its slot and family; ok is false for a key of another family.
func CutFamily(key, family string) (rest string, ok bool) {
	_, path, ok := CutSlot(key)
	if !ok {
		return "", false
	}
	return strings.CutPrefix(path, family)
}

// SlotsPrefix begins the keys of the slots in use. A slot's key is written together with the slot's first [OwnerKey],
// and stays. So a scan of all owners need not ask for each of the 1,024 slots.
const SlotsPrefix = CellPrefix + "s/"

// SlotKey returns the key that says that there are owners in a slot.
func SlotKey(slot licensing.Slot) string { return SlotsPrefix + slot.String() }
