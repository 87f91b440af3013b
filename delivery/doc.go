// Package delivery sends events to the webhook endpoints that subscribe to them. It delivers at least
// once. An endpoint that fails or is slow delays no other endpoint.
//
// The feed is the queue. Each endpoint has a position in its owner's feed: every event before the position was
// delivered, is pending, or was given up (is dead). No event is copied for an endpoint, so a backlog of a
// million events costs what a backlog of one costs. Only a message whose attempt failed is stored on its
// own, with its attempts and the time of the next attempt.
//
// An [Engine] is the part of one node. All nodes that deliver are workers and know each other. Rendezvous
// hashing prefers one worker for each endpoint, so workers agree without talking. The preferred worker
// leases the endpoint: a lease is a key in the store that says which worker, its holder, delivers to the
// endpoint. A lease lives as long as its holder's registration, and each write of a holder compares
// the lease: a holder that was paused, and resumes after another worker has leased the endpoint, changes
// nothing. The messages that it sent meanwhile are sent twice, with the same id.
//
// Each leased endpoint has an endpointLoop: a goroutine that reads pages of the feed, starts attempts, and
// stores their results in checkpoints. A queue decides what the loop does next. The queue is a pure state
// machine: the loop tells it events and times, and the queue does no I/O. After a crash, messages whose
// results were in no checkpoint are sent again, and so are messages behind an event that was not finished.
//
// Package delivery/webhook makes one attempt: the HTTP request, its signature and its result. Package kv/deliveries
// stores positions, leases and messages in etcd. Package node/service creates and changes endpoints, and starts
// replays for the API. Package handlers renders the body of a message (events.go). Package client/webhook is for the
// programs that receive messages.
//
// The tests run several engines on one store, with receivers that fail, hang and lose responses, and crash the engines
// between any two steps.
//
// Files:
//   - engine.go: Engine, its configuration, start and stop
//   - store.go: Store, the interface to the database
//   - worker.go: a worker scans the endpoints, leases endpoints and runs their loops
//   - assignment.go: which worker should lease which endpoint
//   - busylimit.go: fewer attempts on a busy node
//   - loop.go: the loop that delivers to one endpoint
//   - loopattempts.go: the loop makes attempts
//   - loopcheckpoints.go: the loop stores checkpoints
//   - looppages.go: the loop reads pages of the feed
//   - loopreplays.go: the loop works on replays
//   - loopstatus.go: what a loop reports about itself, in metrics
//   - queue.go: the queue and the choice of the next message
//   - queuecheckpoint.go: what a checkpoint contains, and when one is due
//   - queuefailures.go: the pause after a failure of this node
//   - queueoutcomes.go: what an attempt's outcome changes
//   - queuepages.go: when to read a page, and how many events
//   - queuepending.go: pending messages
//   - queuereplays.go: replays of a span of the feed, and of single messages
//   - cursor.go: a cursor in a feed: what was read, started and finished
//   - health.go: an endpoint's concurrency window, failures and probes
//   - trace.go: the span of one attempt
package delivery
