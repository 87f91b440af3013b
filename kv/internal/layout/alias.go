package layout

import "licet/licensing"

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
