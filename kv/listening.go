package kv

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
	"licet/node/store"
)

// listenersPrefix has a key for each owner that listens to activations. Only the
// transaction that moves listenKey writes these keys, so listenKey's revision identifies
// the set of these keys.
const (
	listenersPage = 2000
)

// listeners caches the owners that listen to activations, as of a revision of listenKey.
// The lock of fences guards all of it.
type listeners struct {
	revision int64     // of listenKey; 0: there is no listenKey
	read     int64     // the store's revision at that read
	moved    int64     // requests to listen written up to this revision of the store are in effect
	learned  time.Time // when revision became known here
	owners   map[licensing.Owner]struct{}
	news     chan struct{} // closed when revision changes
}

func newListeners() listeners {
	return listeners{owners: make(map[licensing.Owner]struct{}), news: make(chan struct{})}
}

// listens reports whether an owner listens, as far as is known.
func (f *fences) listens(owner licensing.Owner) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.listeners.has(owner)
}

func (l *listeners) has(owner licensing.Owner) bool {
	_, is := l.owners[owner]
	return is
}

// hold reports whether every assumption agrees with the cache.
func (l *listeners) hold(assumed []assumption) bool {
	for _, a := range assumed {
		if l.has(a.owner) != a.listens {
			return false
		}
	}
	return true
}

// advance takes listenKey as it was read at a revision of the store. It reports false
// where the changes since the known revision are not all named: then readListeners
// must read every owner. An older reading is ignored; a restore may make listenKey
// older, but never the store.
func (f *fences) advance(revision, read int64, is *listenFence) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := &f.listeners
	switch {
	case read < l.read:
		return true
	case revision == l.revision:
		l.read = read
		return true
	}
	since := is.since(l.revision)
	if since == nil {
		return false
	}
	for _, m := range since {
		for _, c := range m.changes {
			if c.listens {
				l.owners[c.owner] = struct{}{}
			} else {
				delete(l.owners, c.owner)
			}
		}
	}
	l.move(revision, read, is.moved)
	return true
}

// replace takes all owners that listen, as they were read at a revision of the store.
func (f *fences) replace(revision, read, moved int64, owners map[licensing.Owner]struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := &f.listeners; read >= l.read {
		if revision < l.revision { // the store was restored: what was in effect may wait again
			l.moved = 0
			f.markLooked.Store(0)
		}
		l.owners = owners
		l.move(revision, read, moved)
	}
}

func (l *listeners) move(revision, read, moved int64) {
	l.revision, l.read, l.moved, l.learned = revision, read, max(l.moved, moved), time.Now()
	close(l.news)
	l.news = make(chan struct{})
}

// learnListening reads who listens.
func (s *Store) learnListening(ctx context.Context) error {
	response, err := s.txn(ctx, "read_listening", nil, []clientv3.Op{clientv3.OpGet(listenKey)}, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	return s.noteListening(ctx, firstOf(response.Responses, 0), response.Header.Revision)
}

// readListenFence reads listenKey; the zero fence where there is no such key. A value that
// can't be read names no moves, so that every listener is read; the next move replaces it.
func (s *Store) readListenFence(kv *mvccpb.KeyValue) (fence listenFence, revision int64) {
	if kv == nil {
		return fence, 0
	}
	fence, err := decodeListenFence(kv.Value)
	if err != nil {
		s.brokenLog.Error().Err(err).Str("key", listenKey).Msg("a value can't be read")
		fence = listenFence{}
	}
	return fence, kv.ModRevision
}

// noteListening takes listenKey as it was read at a revision of the store.
func (s *Store) noteListening(ctx context.Context, kv *mvccpb.KeyValue, read int64) error {
	fence, revision := s.readListenFence(kv)
	if s.fences.advance(revision, read, &fence) {
		return nil
	}
	if err := s.readListeners(ctx); err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	return nil
}

// readListeners reads every owner that listens, page by page at one revision.
func (s *Store) readListeners(ctx context.Context) error {
	owners := make(map[licensing.Owner]struct{})
	end := clientv3.GetPrefixRangeEnd(listenersPrefix)
	page := func(from string, at int64) clientv3.Op {
		return clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(listenersPage), clientv3.WithKeysOnly(), clientv3.WithRev(at))
	}
	response, err := s.txn(ctx, "list_listeners", nil, []clientv3.Op{clientv3.OpGet(listenKey), page(listenersPrefix, 0)}, nil)
	if err != nil {
		return err
	}
	at := response.Header.Revision
	fence, revision := s.readListenFence(firstOf(response.Responses, 0))
	for found := response.Responses[1].GetResponseRange(); ; {
		for _, kv := range found.Kvs {
			// A key that is not in the form of a listener's is for verify to report.
			if owner, rest, ok := ownerOf(string(kv.Key[len(listenersPrefix):])); ok && rest == "" {
				owners[owner] = struct{}{}
			}
		}
		if !found.More {
			break
		}
		next := string(found.Kvs[len(found.Kvs)-1].Key) + "\x00"
		if response, err = s.txn(ctx, "list_listeners", nil, []clientv3.Op{page(next, at)}, nil); err != nil {
			return err
		}
		found = response.Responses[0].GetResponseRange()
	}
	s.fences.replace(revision, at, fence.moved, owners)
	return nil
}

// sayWhoListens notes in a license's snapshot whether its owner listens.
func (s *Store) sayWhoListens(snapshot *store.Snapshot) {
	token, exists := snapshot.Token.(*stored)
	if !exists {
		return
	}
	owner := snapshot.Record.License.Owner
	token.listens = s.fences.listens(owner)
	snapshot.Record.Listening = s.hearAll || token.listens
}

// readListenRequest reads an owner's request to listen.
func readListenRequest(kv *mvccpb.KeyValue) (assumption, error) {
	owner, rest, ok := ownerOf(string(kv.Key[len(listenRequests):]))
	if !ok || rest != "" {
		return assumption{}, errMalformed
	}
	listens, err := decodeListenRequest(kv.Value)
	return assumption{owner, listens}, err
}
