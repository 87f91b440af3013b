package keyspace

import (
	"strings"

	"licet/licensing"
	"licet/node/store"
)

const (
	// LicenseIDSize and DevicePositionSize are lengths of a license's id and of a device's position in keys. Keys have
	// the block of a license's id, since they begin with the slot.
	LicenseIDSize      = licensing.LicenseBlockSize
	DevicePositionSize = len(store.DeviceCursor{})
)

// BlockOf returns how keys name a license behind their slot.
func BlockOf(id licensing.LicenseID) string {
	block := id.Block()
	return string(block[:])
}

// LicenseIDOf returns the id of the license with the block, in the slot; ok is false if block is no block.
func LicenseIDOf(slot licensing.Slot, block string) (id licensing.LicenseID, ok bool) {
	if len(block) != LicenseIDSize {
		return licensing.LicenseID{}, false
	}
	return licensing.NewLicenseID(slot, [LicenseIDSize]byte([]byte(block))), true
}

// CutOwner parses the owner at the beginning of a key, and returns the rest of the key.
func CutOwner(key string) (owner licensing.Owner, rest string, ok bool) {
	account, rest, found := strings.Cut(key, "/")
	if !found || !ValidAccount(account) || len(rest) < 2 {
		return licensing.Owner{}, "", false
	}
	owner.AccountID = account
	switch rest[:2] {
	case "t/":
		owner.Mode = licensing.Test
	case "l/":
		owner.Mode = licensing.Live
	default:
		return licensing.Owner{}, "", false
	}
	return owner, rest[2:], true
}

// cutNamed parses an owner and a name of a length behind the family of a key, and returns the record of a kind that
// they name.
func cutNamed(kind licensing.Kind, rest string, length int) (ref licensing.Ref, ok bool) {
	owner, name, ok := CutOwner(rest)
	if !ok || len(name) != length {
		return licensing.Ref{}, false
	}
	return licensing.Ref{Kind: kind, Owner: owner, ID: name}, true
}

// OwnerIn parses the owner in a key of a family that has one key for each owner.
func OwnerIn(key []byte, family string) (owner licensing.Owner, ok bool) {
	rest, ok := CutFamily(string(key), family)
	if !ok {
		return licensing.Owner{}, false
	}
	owner, rest, ok = CutOwner(rest)
	return owner, ok && rest == ""
}

// ValidAccount reports whether an account can stand in a key and in a log.
func ValidAccount(account string) bool {
	for i := range len(account) {
		if c := account[i]; c <= ' ' || c >= 0x7f || c == '/' {
			return false
		}
	}
	return account != ""
}
