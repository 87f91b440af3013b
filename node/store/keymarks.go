package store

import (
	"crypto/sha256"

	"licet/licensing"
)

// KeyParts is the number of parts that all API keys are divided into, by their owners. A change of a
// key makes each node drop the cached keys of one part. With more parts, fewer owners share a part,
// and each scan reads more marks.
const KeyParts = 256

// KeyPart returns the part of an owner's API keys. Nodes of all builds must agree on the parts, so the
// hash never changes.
func KeyPart(owner licensing.Owner) uint8 {
	return sha256.Sum256([]byte(owner.AccountID + "/" + string(owner.Mode)))[0]
}

// KeyMark identifies a state of API keys: equal marks mean equal keys. Marks can only be compared.
type KeyMark string

// KeyMarks identify the state of all API keys.
type KeyMarks struct {
	// All differs after each change that changes no part's mark, such as a change by a node of an
	// earlier build.
	All   KeyMark
	Parts [KeyParts]KeyMark // by KeyPart
}

// Changed reports for each part whether a key in it may have changed since before.
func (m *KeyMarks) Changed(before *KeyMarks) (parts [KeyParts]bool) {
	for i := range m.Parts {
		parts[i] = m.Parts[i] != before.Parts[i] || m.All != before.All
	}
	return parts
}
