package kv

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/store"
)

const (
	// recountEvery is the time from the beginning of a recount to the beginning of the next one, and recountAgain the
	// same for a recount that has not ended: its node was killed, or could not read the store.
	recountEvery = 24 * time.Hour
	recountAgain = 2 * time.Hour
	// recountRest is the rest after each page, so that a recount takes no more than a share of etcd's time.
	recountRest = 20 * time.Millisecond
	// usagePage is how many usage records are read at a time.
	usagePage = 1000
)

// recounts counts anew how much owners store.
type recounts struct{ *core }

// BeginRecount begins a recount of all usage, unless another node has begun one lately. revision is the revision at
// which the recount must count.
func (s *recounts) BeginRecount(ctx context.Context, now time.Time) (revision int64, begun bool, err error) {
	found, err := s.etcd.GetAll(ctx, "read_recount", []string{keyspace.RecountKey, keyspace.RecountedKey})
	if err != nil {
		return 0, false, err
	}
	latest, ended := found[0], found[1]
	if latest != nil && !s.recountDue(latest, ended, now) {
		return 0, false, nil
	}
	mark := layout.Recount{Begun: now, By: s.incarnation}
	value := string(mark.Encode())
	var inDoubt bool
	response, err := s.etcd.Resolve(ctx, "begin_recount", &inDoubt,
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.RecountKey), "=", latest.GetModRevision())},
		[]clientv3.Op{clientv3.OpPut(keyspace.RecountKey, value)}, []clientv3.Op{clientv3.OpGet(keyspace.RecountKey)})
	if err != nil {
		return 0, false, err
	}
	if response.Succeeded {
		return response.Header.Revision, true, nil
	}
	// An earlier copy of the transaction may have landed.
	kv := etcd.First(response.Responses, 0)
	return kv.GetModRevision(), inDoubt && kv != nil && string(kv.Value) == value, nil
}

// recountDue reports whether another recount is due after the latest one. A mark that can't be read counts as no mark.
func (s *recounts) recountDue(latest, ended *mvccpb.KeyValue, now time.Time) bool {
	last, err := layout.DecodeRecount(latest.Value)
	if s.etcd.Unreadable(keyspace.RecountKey, "cell/recount", err) {
		return true
	}
	every := recountAgain
	if ended != nil {
		done, err := layout.DecodeRecount(ended.Value)
		if !s.etcd.Unreadable(keyspace.RecountedKey, "cell/recount/ended", err) && done.Revision == latest.ModRevision {
			every = recountEvery
		}
	}
	return now.Sub(last.Begun).Abs() >= every // a clock that was days ahead may have set Begun
}

// CountUsage counts how much each owner stores at a revision. Owners with a usage record who store nothing are in the
// result too.
func (s *recounts) CountUsage(ctx context.Context, revision int64) (map[licensing.Owner]licensing.Size, error) {
	sizes, err := verify.Sizes(ctx, s, revision, recountRest)
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	err = s.etcd.EachInSlots(ctx, "list_usage", etcd.Family(keyspace.UsageFamily), usagePage, revision,
		func(kv *mvccpb.KeyValue) {
			if owner, ok := keyspace.OwnerIn(kv.Key, keyspace.UsageFamily); ok {
				sizes[owner] = sizes[owner].Plus(licensing.Size{})
			}
		}, clientv3.WithKeysOnly())
	if err != nil {
		return nil, err
	}
	return sizes, nil
}

// EndRecount records that a recount has ended, unless a later one has begun.
func (s *recounts) EndRecount(ctx context.Context, revision int64, now time.Time) error {
	mark := layout.Recount{Begun: now, By: s.incarnation, Revision: revision}
	_, err := s.etcd.Txn(ctx, "end_recount",
		[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(keyspace.RecountKey), "=", revision)},
		[]clientv3.Op{clientv3.OpPut(keyspace.RecountedKey, string(mark.Encode()))}, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", licensing.ErrOutcomeUnknown, err)
	}
	return nil
}

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
