package licensing

// AliasName names a license besides its id. The first two bytes hold the slot of the license's owner, as in a
// [LicenseID]. The other 16 bytes are the beginning of an HMAC of an external key, see [LicenseKeys.AliasOf], or the
// block of a reissued key.
type AliasName [slotSize + LicenseBlockSize]byte

// Slot returns the slot of the license's owner.
func (a AliasName) Slot() Slot { return leadingSlot(a[0], a[1]) }

// Alias leads from an [AliasName] to a license. The transaction that creates the license, or gives it another key,
// creates the alias too. An alias never changes.
type Alias struct {
	License LicenseID
	Owner   Owner // of the license
}

// AliasRef names an alias.
func AliasRef(name AliasName) Ref { return Ref{Kind: KindAlias, ID: string(name[:])} }

// AliasName returns the name of the alias that a Ref names.
func (r Ref) AliasName() (name AliasName) {
	copy(name[:], r.ID)
	return name
}
