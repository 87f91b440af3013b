package verify

import (
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
)

// checkRevocation checks an entry of a list of revocations.
func (v *recordChecks) checkRevocation(e entry) {
	owner, named, ok := keyspace.CutRevocation(e.rest)
	if !ok {
		v.report("revocation", keyspace.RevocationsFamily+Opaque(e.rest), "key",
			"the key does not name an owner and a license or device")
		return
	}
	if _, err := layout.DecodeRevocation(named, e.value); err != nil {
		v.report("revocation", keyspace.RevocationsFamily+keyspace.OwnerPath(owner)+Opaque(string(named[:])), "value",
			"the value can't be read: %v", err)
	}
}
