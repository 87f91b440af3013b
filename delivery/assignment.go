package delivery

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"licet/node/store"
)

// freeAfter is how long an endpoint must be free until a node claims it that it does
// not belong to: the one that it does belong to may be unable to.
const takeoverAfter = 5 * time.Second

// lentFor is how long it then keeps it.
const temporaryFor = 30 * time.Second

// belongs finds who among the workers an endpoint belongs to: who has the highest hash
// with it. So all agree, and when one comes or goes, only its own ones move.
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

// assignment says which endpoints a worker should have. It is used by one goroutine.
type assignment struct {
	self           store.Incarnation
	workers        []store.Incarnation
	preferred      map[string]store.Incarnation // by endpoint, among the workers
	unclaimedSince map[string]time.Time         // since when nobody has it
}

func newAssignment(self store.Incarnation) *assignment {
	return &assignment{self: self, preferred: make(map[string]store.Incarnation), unclaimedSince: make(map[string]time.Time)}
}

// look takes who is up.
func (a *assignment) setWorkers(workers []store.Incarnation) {
	same := len(workers) == len(a.workers)
	for i := range workers {
		same = same && workers[i] == a.workers[i]
	}
	if !same {
		a.workers = workers
		clear(a.preferred)
	}
}

// mine tells whether an endpoint belongs to this worker.
func (a *assignment) isPreferred(endpoint string) bool {
	owner, known := a.preferred[endpoint]
	if !known {
		owner = preferredWorker(endpoint, a.workers)
		a.preferred[endpoint] = owner
	}
	return owner == a.self
}

// claims tells whether this worker should claim an endpoint that nobody has.
func (a *assignment) shouldClaim(endpoint string, now time.Time) bool {
	since, known := a.unclaimedSince[endpoint]
	if !known {
		since = now
		a.unclaimedSince[endpoint] = now
	}
	return a.isPreferred(endpoint) || now.Sub(since) >= takeoverAfter
}

// taken forgets that an endpoint was free.
func (a *assignment) claimed(endpoint string) { delete(a.unclaimedSince, endpoint) }

// keepOnly forgets the endpoints that are not there any more.
func (a *assignment) retain(there func(endpoint string) bool) {
	for endpoint := range a.preferred {
		if !there(endpoint) {
			delete(a.preferred, endpoint)
		}
	}
	for endpoint := range a.unclaimedSince {
		if !there(endpoint) {
			delete(a.unclaimedSince, endpoint)
		}
	}
}
