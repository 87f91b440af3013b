package kv

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"google.golang.org/protobuf/encoding/protowire"

	"licet"
	"licet/node"
)

// listening is who listens, as of a revision of listenKey.
type listening struct {
	revision int64
	read     int64 // the store's revision when it was read
	owners   map[licet.Owner]struct{}
}

func (l *listening) has(owner licet.Owner) bool {
	_, is := l.owners[owner]
	return is
}

// noteListening remembers who listens, unless that was read later already: a change
// that was made of what is known must not be taken for one made of something older,
// see [Store.sendLost]. A restore may make listenKey older, but never the store.
func (f *fences) noteListening(l *listening) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l.read >= f.listening.read {
		f.listening = l
	}
}

// learnListening reads who listens.
func (s *Store) learnListening(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	response, err := s.kv.Get(ctx, listenKey)
	if err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	var found *mvccpb.KeyValue
	if len(response.Kvs) > 0 {
		found = response.Kvs[0]
	}
	return s.noteWhoListens(found, response.Header.Revision)
}

// noteWhoListens remembers listenKey as it was read at a revision of the store.
func (s *Store) noteWhoListens(kv *mvccpb.KeyValue, read int64) (err error) {
	now := &listening{read: read}
	if kv != nil {
		now.revision = kv.ModRevision
		if now.owners, err = decodeListening(kv.Value); err != nil {
			return broken(err)
		}
	}
	s.fences.noteListening(now)
	return nil
}

// sayWhoListens tells a license's snapshot whether its owner listens.
func (s *Store) sayWhoListens(snapshot *node.Snapshot) {
	token, exists := snapshot.Token.(*stored)
	if !exists {
		return
	}
	_, listening := s.fences.known()
	token.listened = listening.revision
	snapshot.Record.Listening = s.hearAll || listening.has(snapshot.Record.License.Owner)
}

// Field numbers of who listens.
const listeningOwner protowire.Number = 1 // repeated

func encodeListening(owners map[licet.Owner]struct{}) []byte {
	b := []byte{formatVersion}
	for _, owner := range slices.SortedFunc(maps.Keys(owners), compareOwners) {
		b = appendOwner(b, listeningOwner, owner)
	}
	return b
}

func compareOwners(a, b licet.Owner) int {
	return cmp.Or(cmp.Compare(a.AccountID, b.AccountID), cmp.Compare(a.Mode, b.Mode))
}

func decodeListening(value []byte) (map[licet.Owner]struct{}, error) {
	owners := make(map[licet.Owner]struct{})
	err := decodeValue(value, func(f field) error {
		if f.num != listeningOwner {
			return nil
		}
		owner, err := f.owner()
		owners[owner] = struct{}{}
		return err
	})
	return owners, err
}
