package node

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node/store"
)

// ErrNotTaken is what a hop fails with that was refused, or never left: no
// command of it was run, and none ever will be.
var ErrNotTaken = errors.New("the other node has not taken the commands")

// Peers reaches the other nodes on the store. Package peer does so over TLS.
type Peers interface {
	// Send has another node run commands with [Node.Execute]. It answers until
	// ctx ends. An error that is not ErrNotTaken leaves open what became of
	// them, until hop.Over; what has not begun over there by then never will.
	Send(ctx context.Context, to store.Incarnation, hop Hop) (HopAnswer, error)

	// Reach tells by an error that another node does not answer until ctx ends. It
	// asks for nothing that can take long over there.
	Reach(ctx context.Context, to store.Incarnation) error
}

// Hop is commands for one license on their way to the node that writes it: from
// the node that they came to, and no further.
type Hop struct {
	From     store.Incarnation
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
	// YieldsTo is the node that the answering node yields the license to; zero if it does not.
	YieldsTo store.Incarnation
}

// Answer is what a command is answered.
type Answer struct {
	Result licensing.Result
	Err    error // a licensing.Error
}
