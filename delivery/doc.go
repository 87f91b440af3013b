// Package delivery sends events to the endpoints that want them: at least once,
// with an endpoint that fails or is slow delaying nobody else.
//
// The feed is the queue. An endpoint has a place in its owner's feed: all before it
// was delivered, or is pending, or was given up. Nothing is copied for each event, so
// a backlog of a million costs what one event costs. Only what was tried and has
// failed is stored for itself, with its attempts and when the next one is.
//
// An [Engine] is one node's part. All nodes that deliver know each other, and an
// endpoint belongs to the one whose hash with it is the highest, so that they agree
// without talking. That one claims it. A claim lives as long as its holder's lease,
// and everything that a holder stores is compared with its claim: one that was
// paused, and wakes up when others have gone on, changes nothing any more. What it
// has sent meanwhile is sent twice, with the same id.
//
// For each endpoint there is a goroutine that reads pages of the feed, has attempts
// made, and stores in checkpoints what came of them. What it does next is decided by
// a queue, which is told what has happened and at what time, and does nothing
// itself: see queue.go. After a crash, what had ended since the last checkpoint and
// what lay behind something that had not is sent again.
package delivery
