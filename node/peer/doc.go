// Package peer carries commands from one node to another, for package node's placement. It does not
// decide which node runs a command, and it runs none: package node does both (placement.go, hop.go). Package cmd/licet
// opens the listener.
//
// Each node has a listener for other nodes, apart from the public listener. It speaks TLS with a key
// that the process creates when it starts. The node's registration in the store contains the hash of that
// key. So a caller knows that it speaks with that incarnation, without a certificate authority.
// Callers authenticate by an HMAC under a key derived from the master key, which only nodes have.
//
// The steps of a hop:
//
//  1. The caller finds the incarnation among the registered nodes.
//  2. The caller asks for the other node's age, unless it has learned the age lately. The age is the
//     time since that node started, by its monotonic clock: wall clocks may differ.
//  3. The caller signs the commands, the other node's incarnation and the age at which the commands
//     expire, and sends them once. It never sends them again.
//  4. The other node verifies the signature before it reads any command, refuses expired commands and
//     commands for another node, and runs the rest by node.Execute.
//  5. The other node answers each command, along with its age.
//
// Commands and results are encoded as CBOR (RFC 8949).
//
// A failure before step 3 and a refusal return node.ErrNotTaken. After a later failure, the outcome of
// the commands is unknown.
//
// The tests connect nodes over loopback, and send stale, forged and oversized messages to the listener.
//
// The map of the package:
//
//	client.go    the client, and the list of nodes
//	link.go      connections to one other node, and its age
//	server.go    the server: its connections and their time limits
//	callers.go   the connections of nodes and of strangers
//	message.go   encoding of commands
//	reply.go     encoding of results
//	signature.go the signature: authentication and expiry
//	identity.go  the TLS key of a node
//	trace.go     trace headers
package peer
