package delivery

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"licet/node/store"
)

// takeoverAfter is how long an endpoint must be free before a worker that is not its preferred worker
// leases it. The preferred worker may be unable to.
const takeoverAfter = 5 * time.Second

// temporaryFor is how long a worker that is not the preferred worker keeps an endpoint.
const temporaryFor = 30 * time.Second

// preferredWorker returns the worker that should lease an endpoint, by rendezvous hashing: the worker with the
// highest hash of worker and endpoint. All workers agree, and when a worker comes or goes, only its own
// endpoints move.
func preferredWorker(endpoint string, workers []store.Incarnation) (best store.Incarnation) {
	var highest uint64
	for _, worker := range workers {
		sum := sha256.Sum256(append(worker[:], endpoint...))
		hash := binary.BigEndian.Uint64(sum[:])
		if best.IsZero() || hash > highest || hash == highest && worker.Below(best) {
			best, highest = worker, hash
		}
	}
	return best
}

// assignment decides which endpoints a worker should lease. One goroutine uses it.
type assignment struct {
	self      store.Incarnation
	workers   []store.Incarnation
	preferred map[string]store.Incarnation // the preferred worker, by endpoint
	freeSince map[string]time.Time         // by endpoint
}

func newAssignment(self store.Incarnation) *assignment {
	return &assignment{
		self: self, preferred: make(map[string]store.Incarnation), freeSince: make(map[string]time.Time),
	}
}

// setWorkers sets the workers that are up.
func (a *assignment) setWorkers(workers []store.Incarnation) {
	if !slices.Equal(workers, a.workers) {
		a.workers = workers
		clear(a.preferred)
	}
}

// isPreferred reports whether this worker is the endpoint's preferred worker.
func (a *assignment) isPreferred(endpoint string) bool {
	owner, known := a.preferred[endpoint]
	if !known {
		owner = preferredWorker(endpoint, a.workers)
		a.preferred[endpoint] = owner
	}
	return owner == a.self
}

// shouldAcquire reports whether this worker should lease an endpoint that is free.
func (a *assignment) shouldAcquire(endpoint string, now time.Time) bool {
	since, known := a.freeSince[endpoint]
	if !known {
		since = now
		a.freeSince[endpoint] = now
	}
	return a.isPreferred(endpoint) || now.Sub(since) >= takeoverAfter
}

// leased notes that an endpoint is leased.
func (a *assignment) leased(endpoint string) { delete(a.freeSince, endpoint) }

// retain forgets the endpoints for which exists reports false.
func (a *assignment) retain(exists func(endpoint string) bool) {
	maps.DeleteFunc(a.preferred, func(id string, _ store.Incarnation) bool { return !exists(id) })
	maps.DeleteFunc(a.freeSince, func(id string, _ time.Time) bool { return !exists(id) })
}
