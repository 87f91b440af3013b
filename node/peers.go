package node

import (
	"context"
	"errors"
	"time"

	"licet/licensing"
	"licet/metrics/tracing"
	"licet/node/store"
)

// ErrNotTaken says that a hop was refused, or was never sent: none of its commands was run, and none ever will be.
var ErrNotTaken = errors.New("the other node has not taken the commands")

// Peers reaches the other nodes on the store. Package peer does so over TLS.
type Peers interface {
	// Send makes another node run commands with [Node.Execute], and returns the answer, or an error when ctx ends.
	// An error other than ErrNotTaken leaves the outcome of the commands open, until hop.Over: a command that has
	// not begun by then never will.
	Send(ctx context.Context, to store.Incarnation, hop Hop) (HopAnswer, error)

	// Reach asks another node for a sign of life, and fails if none comes until ctx ends. The other node does
	// nothing for the answer that can take long.
	Reach(ctx context.Context, to store.Incarnation) error
}

// Hop contains commands on one license on their way from the node that they came to, to the node that owns the license,
// and no further.
type Hop struct {
	From     store.Incarnation
	License  licensing.LicenseID
	Commands []licensing.Command // Activate and RemoveDevice, at most MaxHop
	Over     time.Time           // when the commands expire, by the clock of the node that has the Hop
	Trace    tracing.Parent      // of the first command that is traced; it goes beside the message
}

// MaxHop is how many commands may hop at once.
const MaxHop = foldCommands

// HopAnswer contains the answers of a hop's commands, in the order of the commands.
type HopAnswer struct {
	Answers []Answer
	// YieldsTo is the owner that the answering node yields the license to or, if it could not serve the commands, the
	// node that it has seen to write the license; zero if there is none.
	YieldsTo store.Incarnation
	// Busy: the answering node had other commands on the license too.
	Busy bool
}

// Answer is the answer of a command.
type Answer struct {
	Result licensing.Result
	Err    error // a licensing.Error
}
