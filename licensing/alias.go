package licensing

// AliasName names a license besides its id, and has the form of an id: the slot of the license's owner, and a block.
// The block is that of a reissued key, or the beginning of an HMAC of an external key, see keyring.LicenseKeys.AliasOf.
type AliasName LicenseID

// Alias leads from an [AliasName] to a license. The transaction that creates the license, or gives it another key,
// creates the alias too. An alias never changes.
type Alias struct {
	License LicenseID
	Owner   Owner // of the license
}

// AliasRef names an alias.
func AliasRef(name AliasName) Ref { return Ref{Kind: KindAlias, ID: string(name[:])} }

// AliasName returns the name of the alias that a Ref names.
func (r Ref) AliasName() AliasName { return AliasName(r.LicenseID()) }
