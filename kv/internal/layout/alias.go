package layout

import "licet/licensing"

// AliasesFamily begins the keys of aliases.
const AliasesFamily = "n/"

// AliasSize is the length of an alias in a key.
const AliasSize = len(licensing.AliasName{}) - slotInName

// slotInName is how many bytes of the name of an alias are the slot.
const slotInName = 2

// AliasKey returns the key of an alias.
func AliasKey(name licensing.AliasName) string {
	return InSlot(name.Slot(), AliasesFamily+string(name[slotInName:]))
}

// EncodeAlias returns the value of an alias.
func EncodeAlias(a licensing.Alias) []byte { return aliasTable(&a).value() }

// DecodeAlias decodes the value of an alias.
func DecodeAlias(value []byte) (a licensing.Alias, err error) {
	err = DecodeValue(value, aliasTable(&a).read)
	return a, owned(a.Owner, err)
}

func aliasTable(a *licensing.Alias) fieldTable {
	return fieldTable{arrayField(1, a.License[:]), ownerField(2, &a.Owner)}
}
