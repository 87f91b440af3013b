package store

import (
	"encoding/hex"
	"time"
)

// Incarnation names one start of a node: random, and new at every start. A record names the
// incarnations that last wrote it.
type Incarnation [8]byte

// IsZero reports whether i is the zero Incarnation, which names no node.
func (i Incarnation) IsZero() bool { return i == Incarnation{} }

// Below orders incarnations.
func (i Incarnation) Below(other Incarnation) bool { return string(i[:]) < string(other[:]) }

// String returns i in hex, for logs.
func (i Incarnation) String() string { return hex.EncodeToString(i[:]) }

// Registration says that a node runs, and how other nodes reach the node. Address and PublicKey are both set or, if the
// node does not listen to other nodes, both zero.
type Registration struct {
	Incarnation Incarnation
	Address     string   // host:port of the listener for other nodes
	PublicKey   [32]byte // SHA-256 of the public key of that listener, in PKIX form
	Version     string   // of the node's program; empty: a version that registers none
}

// Stamp is the time of a node by its own clock, which the node stores in its registration.
type Stamp struct {
	Node Incarnation
	At   time.Time
	// Created identifies the registration: it is another number once the node has registered again.
	Created int64
	// Version counts how often the registration was written. A node makes the stamp of a version once it knows that
	// the version before is stored.
	Version int64
}

// Stamper makes the stamps of a node. clocks.Comparison implements it.
type Stamper interface {
	// Stamp returns the time of the node. The caller stores the time, and reads all stamps in the same transaction,
	// linearizably. If the caller can't store the time, it only reads. If the node's clock was set, the registration
	// must end, and the time is stored in the next registration: other nodes then no longer rely on the stamps of
	// before.
	Stamp() (now time.Time, registerAgain bool)
	// Compare takes the stamps that were read since the last call of Stamp, the node's own too.
	Compare(stamps []Stamp)
	// Leave says that the registration is about to end: until a later Compare, the node does not act by its clock.
	Leave()
}
