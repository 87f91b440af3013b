package node

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
)

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

// ErrNotTaken is what a hop fails with that was refused, or never left: no
// command of it was run, and none ever will be.
var ErrNotTaken = errors.New("the other node has not taken the commands")

// Peers reaches the other nodes on the store. Package peer does so over TLS.
type Peers interface {
	// Send has another node run commands with [Node.Execute]. It answers until
	// ctx ends. An error that is not ErrNotTaken leaves open what became of
	// them, until hop.Over; what has not begun over there by then never will.
	Send(ctx context.Context, to Incarnation, hop Hop) (HopAnswer, error)

	// Reach tells by an error that another node does not answer until ctx ends. It
	// asks for nothing that can take long over there.
	Reach(ctx context.Context, to Incarnation) error
}

// Hop is commands for one license on their way to the node that writes it: from
// the node that they came to, and no further.
type Hop struct {
	From     Incarnation
	Key      licensing.LicenseKey
	Commands []licensing.Command // Activate and RemoveDevice, at most MaxHop
	Over     time.Time           // by the clock of whoever has the Hop in hand
	Trace    tracing.Parent      // of those commands that are traced, the first one's; it goes beside the message
}

// MaxHop is how many commands may hop at once.
const MaxHop = foldCommands

// HopAnswer is what became of the commands of a hop, in their order.
type HopAnswer struct {
	Answers []Answer
	// YieldsTo is the node that the one that ran the commands sends those to that
	// come to itself, or, where it could not serve them, the one it has seen to write
	// the license instead; zero where there is none.
	YieldsTo Incarnation
	// Busy: it had commands for the license besides these.
	Busy bool
}

// Answer is what a command is answered.
type Answer struct {
	Result licensing.Result
	Err    error // a licensing.Error
}

// Registration says how a node that is up is reached by the others.
type Registration struct {
	Incarnation Incarnation
	Address     string   // host:port of the listener for the others
	PublicKey   [32]byte // SHA-256 of the public key it shows there, in PKIX form
}
