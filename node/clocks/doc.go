// Package clocks compares the clock of a node with the clocks of the other nodes, and says what the node may do with
// its clock.
//
// # What a stamp proves
//
// Each half second a node stores its time, its stamp, in its registration, and reads all registrations in the same
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
// The two bounds lie about one second apart. Requests to the store that take r seconds widen the bounds by up to 3 r,
// and never make them wrong. The stamp of a dead node goes with the lease of its registration, within ten seconds.
// Until then its bounds stay as they are.
//
// # What a node does
//
//   - A node agrees if the bounds prove that a majority of all registered nodes, itself included, is within MaxApart of
//     its clock, and it has read its own registration among them. The node serves, and acts by time: it gives
//     leases, and sweeps remove claims and events, record ends, and try refunds.
//   - A node refuses all requests if it is proven to differ by more than the tolerance from a majority whose nodes are
//     not proven to differ from each other. Such a majority needs three nodes.
//   - Any other node serves, and does not act by time. It gives and renews no leases: their ends would be as wrong as
//     its clock. It makes no lists of revocations. It dates receipts and sets of receipt keys by the earliest of the
//     nodes' clocks, see licensing.DocumentClock. So of two nodes that differ, both make them, and date them alike. It
//     notes when a device was seen by the latest clock, if inactive devices of the license are removed.
//
// So two nodes that act by time differ by at most 2 × MaxApart = 4.8 s: two majorities of the same nodes have a node in
// common, and each of the two nodes is within MaxApart of this node. That also holds while nodes join or leave.
// licensing.LeaseGuard is 5 s. A proof holds for trustFor from the beginning of its read, although later bounds are too
// wide to prove it again, or a node that joins has no bounds yet: the node may go on like a node that has not read
// since. The proof ends at once if the bounds contradict it, if the node's own registration is gone, if the machine has
// slept, or if the proven distance and a step of the node's own clock add up to more than MaxApart.
//
// Several nodes that join at once can be a majority without the nodes that were there before, and one of these may not
// have read since. So until a node has known of another node for trustFor, it agrees only if half of the nodes that
// registered before that node, or more, are near, too. In a cluster that starts, all nodes wait for trustFor if the
// clock of the first node is wrong, and no longer than for their bounds if it is right.
//
// A node that starts does not know which nodes left before its first read. A node that is slow may still act by time as
// a majority with such a node has allowed. So for trustFor after its first read, a node agrees only if all nodes of
// that read are near. That also holds for the first read after a pause of trustFor: nodes may have come and gone.
//
// If several nodes leave at once, or their registrations end, the other nodes can be a majority that they were not
// before. So for trustFor after a node knows that another node is gone, the gone node still counts if it was not near:
// the node agrees only if half of all these nodes, or more, are near.
//
// No node acts by time without being registered. A node that leaves stays registered until it has answered its last
// command, and drops its proof before it removes the registration. A node that is cut off or paused drops its proof by
// trustFor, which is less than its registration outlives its last stamp.
//
// A node that starts is not ready before its first verdict, for startGrace at most: until then it serves the requests
// that come all the same. A lone node has its verdict with its first stamp.
//
// With two nodes that differ, nothing shows which of them is right. A lone node can only refuse a clock that is behind
// the newest stamp that the node has stored: then it does not act by time. Nothing shows a lone node that its clock
// is ahead. But a node that has differed from another node does not act by time because the other node has gone. It
// does so only once it agrees with another node, or has started again.
//
// A node dates documents by the earliest clock that it was compared with, also after the node of that clock has gone. A
// node that has just started dates no documents until it is compared, for at most startGrace. A node whose clock was
// set dates no documents for at most stepGrace. If the clocks were apart before, it dates none until it is compared.
//
// # Steps
//
// Bounds say how far the clocks are apart only as long as no clock is set. The node notices a step of its own clock by
// comparing wall time with monotonic time: in each comparison of stamps, and before each write that depends on time.
// After a step of more than the tolerance the node discards all bounds. In a cluster of at least three nodes it refuses
// requests until new bounds decide, or stepGrace has passed.
//
// For trustFor, another node may rely on this node's stamps from before a step while a third node relies on later
// stamps. So after a step of more than slept, a node that is not alone ends its registration before it stores another
// stamp, and registers again like a node that joins. Two nodes that act by time differ by at most 2 × MaxApart + slept
// then.
//
// The monotonic clock of Linux stops while the machine sleeps; that looks like a step too. After any step forward of
// more than slept the node forgets when its reads began: they began earlier than the monotonic clock says.
//
// # Failures of the store
//
// A node that can't store its stamp, as under etcd's alarm NOSPACE, still reads the other nodes' stamps. A node that
// can't read keeps its verdict, and no longer acts by time after trustFor. So a failing store makes no node refuse
// requests because of its clock.
//
// # Files
//
//	clocks.go     Comparison: the verdict on a node's clock, and what the node may do
//	documents.go  by which clock the node dates documents
//	evidence.go   what the stamps of the other nodes prove
//	verdict.go    the verdict that follows from the bounds
package clocks
