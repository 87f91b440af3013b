package delivery

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"licet/node/store"
)

// freeAfter is how long an endpoint must be free until a node claims it that it does
// not belong to: the one that it does belong to may be unable to.
const freeAfter = 5 * time.Second

// lentFor is how long it then keeps it.
const lentFor = 30 * time.Second

// belongs finds who among the workers an endpoint belongs to: who has the highest hash
// with it. So all agree, and when one comes or goes, only its own ones move.
func belongs(endpoint string, workers []store.Incarnation) (best store.Incarnation) {
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
	self    store.Incarnation
	workers []store.Incarnation
	owners  map[string]store.Incarnation // by endpoint, among the workers
	free    map[string]time.Time         // since when nobody has it
}

func newAssignment(self store.Incarnation) *assignment {
	return &assignment{self: self, owners: make(map[string]store.Incarnation), free: make(map[string]time.Time)}
}

// look takes who is up.
func (a *assignment) look(workers []store.Incarnation) {
	same := len(workers) == len(a.workers)
	for i := range workers {
		same = same && workers[i] == a.workers[i]
	}
	if !same {
		a.workers = workers
		clear(a.owners)
	}
}

// mine tells whether an endpoint belongs to this worker.
func (a *assignment) mine(endpoint string) bool {
	owner, known := a.owners[endpoint]
	if !known {
		owner = belongs(endpoint, a.workers)
		a.owners[endpoint] = owner
	}
	return owner == a.self
}

// claims tells whether this worker should claim an endpoint that nobody has.
func (a *assignment) claims(endpoint string, now time.Time) bool {
	since, known := a.free[endpoint]
	if !known {
		since = now
		a.free[endpoint] = now
	}
	return a.mine(endpoint) || now.Sub(since) >= freeAfter
}

// taken forgets that an endpoint was free.
func (a *assignment) taken(endpoint string) { delete(a.free, endpoint) }

// keepOnly forgets the endpoints that are not there any more.
func (a *assignment) keepOnly(there func(endpoint string) bool) {
	for endpoint := range a.owners {
		if !there(endpoint) {
			delete(a.owners, endpoint)
		}
	}
	for endpoint := range a.free {
		if !there(endpoint) {
			delete(a.free, endpoint)
		}
	}
}
