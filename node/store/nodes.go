package store

import (
	"encoding/hex"
)

// Cell is the character that all ids of this store cluster carry. There is one cluster today. Ids name
// their cluster so that there can be more.
const Cell = '0'

// Incarnation names one start of a node: random, and new at every start. A record names the
// incarnations that last wrote it.
type Incarnation [8]byte

// IsZero reports whether i is the zero Incarnation, which names no node.
func (i Incarnation) IsZero() bool { return i == Incarnation{} }

// Below orders incarnations.
func (i Incarnation) Below(other Incarnation) bool { return string(i[:]) < string(other[:]) }

// String returns i in hex, for logs.
func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }

// Registration says how other nodes reach a running node.
type Registration struct {
	Incarnation Incarnation
	Address     string   // host:port of the listener for other nodes
	PublicKey   [32]byte // SHA-256 of the public key of that listener, in PKIX form
}
