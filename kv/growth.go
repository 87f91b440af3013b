package kv

import (
	"sync"

	"licet/licensing"
	"licet/node/store"
)

// growth collects by how much changes of this store have made their owners store more, until TakeGrowth takes it.
// Only changes that are known to have landed are in it. A change adds one element, so owners don't contend for a
// counter in etcd or in memory.
type growth struct {
	mu      sync.Mutex
	changes []store.OwnerGrowth
	summed  int // how many changes addUp has left, one for each owner
}

// maxGrowth bounds the collected changes: from so many on, and from twice as many as there are owners, changes of the
// same owner are added up, so adding up costs a change little however many owners there are. Then a recount that begins
// meanwhile may count some of them twice.
const maxGrowth = 1 << 16

// note adds a change that has landed at a revision of the store.
func (g *growth) note(owner licensing.Owner, revision int64, size licensing.Size) {
	if size == (licensing.Size{}) || owner == (licensing.Owner{}) {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.changes) >= max(maxGrowth, 2*g.summed) {
		g.addUp()
	}
	g.changes = append(g.changes, store.OwnerGrowth{
		Owner: owner, SizeChange: licensing.SizeChange{Revision: revision, Size: size},
	})
}

// addUp leaves one change for each owner. The caller holds mu.
func (g *growth) addUp() {
	places := make(map[licensing.Owner]int)
	sums := g.changes[:0]
	for _, c := range g.changes {
		at, known := places[c.Owner]
		if !known {
			places[c.Owner] = len(sums)
			sums = append(sums, c)
			continue
		}
		sum := &sums[at]
		sum.Size, sum.Revision = sum.Size.Plus(c.Size), max(sum.Revision, c.Revision)
	}
	g.changes, g.summed = sums, len(sums)
}

// TakeGrowth returns by how much the changes of this store that have landed since the last call have made their
// owners store more.
func (s *core) TakeGrowth() []store.OwnerGrowth {
	s.growth.mu.Lock()
	defer s.growth.mu.Unlock()
	taken := s.growth.changes
	s.growth.changes, s.growth.summed = nil, 0
	return taken
}

// NoteGrowth adds a change that has landed at a revision of the store, for the packages below kv.
func (s *core) NoteGrowth(owner licensing.Owner, revision int64, size licensing.Size) {
	s.growth.note(owner, revision, size)
}
