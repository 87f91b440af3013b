// Package clocks compares the clock of a node with the clocks of the other nodes, and says what the node may do with
// its clock.
//
// # What a stamp proves
//
// Each second a node stores its time, its stamp, in its registration, and reads all registrations in the same
// transaction. A node makes each stamp after the answer to its transaction before, and the transaction compares the
// revision of the registration. So the stamps of one node are stored in the order in which they were made, and a
// request that was on its way for long stores nothing.
//
//   - A stamp was made before any read that returns the stamp. If the stamp is later than the reader's clock after the
//     read, the other clock is ahead by the difference at least, whatever the delays were.
//   - A stamp proves the other direction only if the reader knows a moment before the stamp was made. The node that
//     made version v+2 of its registration knew of version v+1, which was stored after any read that returned version
//     v. So version v+2 was made after that read began. If the stamp is earlier than the reader's clock was then, the
//     other clock is behind by the difference at least.
//
// The two bounds lie about three seconds apart, however long requests take: a slow request widens the bounds, and never
// makes them wrong. A difference is proven once it exceeds the tolerance by that much at most. The stamp of a dead node
// goes with the lease of its registration, within ten seconds. Until then its bounds stay as they are.
//
// # What a node does
//
// All nodes are counted, but only nodes with both bounds have a vote. Nodes whose clocks are not proven to differ by
// more than the tolerance agree.
//
//   - A node that agrees with a majority, itself included, serves, and acts by time: sweeps remove claims and events,
//     record ends, and try refunds.
//   - A node that differs from a majority whose nodes agree with each other refuses all requests. Such a majority needs
//     three nodes.
//   - Any other node serves, and does not act by time.
//
// With two nodes that differ, nothing shows which of them is right. A lone node can only refuse a clock that is behind
// the newest stamp that the node has stored: then it does not act by time. Nothing shows a lone node that its clock
// is ahead. But a node that has differed from another node does not act by time because the other node has gone.
//
// # Steps
//
// Bounds say how far the clocks are apart only as long as no clock is set. The node notices a step of its own clock by
// comparing wall time with monotonic time: in each comparison of stamps, and before each write that depends on time.
// After a step of more than the tolerance the node discards all bounds. In a cluster of at least three nodes it refuses
// requests until new bounds decide, or stepGrace has passed. The monotonic clock of Linux stops while the machine
// sleeps; that looks like a step too.
//
// # Failures of the store
//
// A node that can't store its stamp, as under etcd's alarm NOSPACE, still reads the other nodes' stamps. A node that
// can't read keeps its verdict, and no longer acts by time after trustFor. So a failing store makes no node refuse
// requests because of its clock.
//
// # Files
//
//	clocks.go    Comparison: the verdict on a node's clock, and what the node may do
//	evidence.go  what the stamps of the other nodes prove
//	verdict.go   the verdict that follows from the bounds
package clocks
