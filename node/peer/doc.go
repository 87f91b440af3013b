// Package peer carries commands from one node to another, for package node's
// placement.
//
// Each node has a listener for the others, apart from the one for the world. It
// speaks TLS with a key that was made when the process began; the hash of that
// key lies in the node's registration in the store, so a caller knows that it
// speaks with that very incarnation, without a certificate authority. Callers
// prove who they are by an HMAC under a key that is derived from the master key,
// which all nodes share and nobody else has.
//
// A hop goes like this:
//
//  1. The caller looks the incarnation up among the registered nodes.
//  2. It asks for the other node's age, which is the time by that node's own
//     monotonic clock, unless it has learned it lately: clocks on the wall may
//     differ.
//  3. It seals the commands, the other's incarnation and the age at which they
//     are over, and sends them once. Nothing is ever sent twice.
//  4. The other node opens the seal before it reads any command, refuses what is
//     over or meant for somebody else, and runs the rest through node.Execute.
//  5. It answers each command, along with its age.
//
// What fails before the third step, and what is refused, gives
// node.ErrNotTaken. Whatever fails later leaves open what became of the commands.
package peer
