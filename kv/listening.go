package kv

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// listenersPage is how many owners that listen one request reads. Below keyspace.ListenersPrefix each has a key. Only
// the transaction that moves keyspace.ListenKey writes these keys, so keyspace.ListenKey's revision identifies
// the set of these keys.
const (
	listenersPage = 2000
)

// listeners caches the owners that listen to activations, as of a revision of keyspace.ListenKey.
// The lock of fences guards all of it.
type listeners struct {
	revision int64     // of keyspace.ListenKey; 0: there is no keyspace.ListenKey
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

// agree reports whether every assumption agrees with the cache.
func (l *listeners) agree(assumed []layout.Listening) bool {
	for _, a := range assumed {
		if l.has(a.Owner) != a.Listens {
			return false
		}
	}
	return true
}

// advance takes keyspace.ListenKey as it was read at a revision of the store. It reports false
// where the changes since the known revision are not all named: then readListeners
// must read every owner. An older reading is ignored; a restore may make keyspace.ListenKey
// older, but never the store.
func (f *fences) advance(revision, read int64, is *layout.ListenFence) bool {
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
	since := is.Since(l.revision)
	if since == nil {
		return false
	}
	for _, m := range since {
		for _, c := range m.Changes {
			if c.Listens {
				l.owners[c.Owner] = struct{}{}
			} else {
				delete(l.owners, c.Owner)
			}
		}
	}
	l.move(revision, read, is.Moved)
	return true
}

// replace takes all owners that listen, as they were read at a revision of the store.
func (f *fences) replace(revision, read, moved int64, owners map[licensing.Owner]struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if l := &f.listeners; read >= l.read {
		if keyspace.Restored(l.revision, revision) { // requests that were in effect may wait again
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

// learnListening reads which owners listen.
func (s *epochs) learnListening(ctx context.Context) error {
	response, err := s.etcd.Txn(ctx, "read_listening", nil, []clientv3.Op{clientv3.OpGet(keyspace.ListenKey)}, nil)
	if err != nil {
		return fmt.Errorf("%w: %w", errFence, err)
	}
	return s.noteListening(ctx, etcd.First(response.Responses, 0), response.Header.Revision)
}

// readListenFence reads keyspace.ListenKey; the zero fence if there is no such key. A value that
// can't be read names no moves, so that every listener is read; the next move replaces it.
func (s *epochs) readListenFence(kv *mvccpb.KeyValue) (fence layout.ListenFence, revision int64) {
	if kv == nil {
		return fence, 0
	}
	fence, err := layout.DecodeListenFence(kv.Value)
	if s.etcd.Unreadable(keyspace.ListenKey, "cell/listen", err) {
		fence = layout.ListenFence{}
	}
	return fence, kv.ModRevision
}

// noteListening takes keyspace.ListenKey as it was read at a revision of the store.
func (s *epochs) noteListening(ctx context.Context, kv *mvccpb.KeyValue, read int64) error {
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
func (s *epochs) readListeners(ctx context.Context) error {
	owners := make(map[licensing.Owner]struct{})
	end := clientv3.GetPrefixRangeEnd(keyspace.ListenersPrefix)
	page := func(from string, at int64) clientv3.Op {
		return clientv3.OpGet(from, clientv3.WithRange(end), clientv3.WithLimit(listenersPage), clientv3.WithKeysOnly(),
			clientv3.WithRev(at))
	}
	response, err := s.etcd.Txn(ctx, "list_listeners", nil,
		[]clientv3.Op{clientv3.OpGet(keyspace.ListenKey), page(keyspace.ListenersPrefix, 0)}, nil)
	if err != nil {
		return err
	}
	at := response.Header.Revision
	fence, revision := s.readListenFence(etcd.First(response.Responses, 0))
	for found := response.Responses[1].GetResponseRange(); ; {
		for _, kv := range found.Kvs {
			// A key that is not the key of a listener is for verify to report.
			if owner, rest, ok := keyspace.CutOwner(string(kv.Key[len(keyspace.ListenersPrefix):])); ok && rest == "" {
				owners[owner] = struct{}{}
			}
		}
		if !found.More {
			break
		}
		next := etcd.After(found.Kvs[len(found.Kvs)-1].Key)
		if response, err = s.etcd.Txn(ctx, "list_listeners", nil, []clientv3.Op{page(next, at)}, nil); err != nil {
			return err
		}
		found = response.Responses[0].GetResponseRange()
	}
	s.fences.replace(revision, at, fence.Moved, owners)
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
	snapshot.Record.Listening = s.recordActivations || token.listens
}

// readListenRequest reads an owner's request to listen.
func readListenRequest(kv *mvccpb.KeyValue) (layout.Listening, error) {
	owner, rest, ok := keyspace.CutOwner(string(kv.Key[len(keyspace.ListenRequests):]))
	if !ok || rest != "" {
		return layout.Listening{}, layout.ErrMalformed
	}
	listens, err := layout.DecodeListenRequest(kv.Value)
	return layout.Listening{Owner: owner, Listens: listens}, err
}
