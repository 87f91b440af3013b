package store

import (
	"encoding/hex"
)

// Cell is the character that this store cluster's ids carry. There is one
// cluster today; ids say which one they belong to so that more can come.
const Cell = '0'

// Incarnation names one start of a node: random, and new at every start. A
// record names the incarnations that wrote it last. Of two that contend for a
// record, the lower one yields.
type Incarnation [8]byte

// IsZero reports whether i names nobody.
func (i Incarnation) IsZero() bool { return i == Incarnation{} }

// Below orders incarnations.
func (i Incarnation) Below(other Incarnation) bool { return string(i[:]) < string(other[:]) }

// String is for logs.
func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }

// Registration says how a node that is up is reached by the others.
type Registration struct {
	Incarnation Incarnation
	Address     string   // host:port of the listener for the others
	PublicKey   [32]byte // SHA-256 of the public key it shows there, in PKIX form
}
