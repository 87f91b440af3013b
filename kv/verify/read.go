package verify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"licet/internal/backoff"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/licensing"
)

const (
	// pageSize is how many keys one request reads where etcd can't stream.
	pageSize = 500
	// lookupBatch is how many keys are looked up in one request; etcd allows
	// 128 operations.
	lookupBatch = 100
	// askTimeout bounds the wait for one page, one piece of a stream or one batch of lookups. askTries bounds how often
	// such a request is sent.
	askTimeout = 10 * time.Second
	askTries   = 5
	askPause   = 200 * time.Millisecond
)

// entry is one key of a family with its value.
type entry struct {
	slot  licensing.Slot // 0 for a key of the cell
	key   string
	rest  string // the key below the family's prefix
	value []byte
}

// stream reads the keys of a family in their order: slot by slot. It reports and leaves out keys that are not in the
// slot of their owner.
//
// etcd 3.7 streams a range in pieces of about a megabyte. Before that a range
// is read in pages, and etcd counts all keys from each page to the range's
// end, which makes a large store slow to read.
type stream struct {
	v      *reading
	family string           // its prefix below the slot
	place  int              // of the family in the summary
	slots  []licensing.Slot // whose keys are still to be read
	slot   licensing.Slot   // that is being read
	prefix string           // of the keys that are being read
	from   string           // the first key not yet read
	to     string
	page   []*mvccpb.KeyValue // read and not yet returned
	ended  bool               // no key of the slot is left to read

	pieces clientv3.GetStreamChan // nil while no stream is open
	cancel context.CancelFunc     // of pieces
}

// stream begins to read a family. The caller must close it.
func (v *reading) stream(prefix string) *stream {
	s := &stream{v: v, family: prefix, place: v.places[prefix], ended: true}
	if inCell(prefix) {
		s.begin(keyspace.Prefix + prefix)
	} else {
		s.slots = v.slots
	}
	return s
}

// begin begins to read the keys with a prefix.
func (s *stream) begin(prefix string) {
	s.prefix, s.from, s.to, s.ended = prefix, prefix, clientv3.GetPrefixRangeEnd(prefix), false
}

// peek returns the next key and does not consume it; more is false at the end.
func (s *stream) peek(ctx context.Context) (e entry, more bool, err error) {
	for {
		for len(s.page) == 0 {
			if s.ended {
				if len(s.slots) == 0 {
					return entry{}, false, nil
				}
				s.slot, s.slots = s.slots[0], s.slots[1:]
				s.begin(keyspace.InSlot(s.slot, s.family))
			}
			if err := s.v.retry(ctx, s.read); err != nil {
				return entry{}, false, err
			}
			s.v.count(s.place, len(s.page))
			if s.v.rest > 0 && len(s.page) > 0 && !backoff.Sleep(ctx, s.v.rest) {
				return entry{}, false, ctx.Err()
			}
		}
		kv := s.page[0]
		key := string(kv.Key)
		e = entry{slot: s.slot, key: key, rest: key[len(s.prefix):], value: kv.Value}
		if inCell(s.family) || e.inOwnSlot(s.family, s.v.cfg.Keys) {
			return e, true, nil
		}
		s.v.report(s.v.summary.Families[s.place].Name, s.family+Opaque(e.rest), "slot",
			"the key is in slot %v, which is not the slot of its owner", e.slot)
		s.skip()
	}
}

// next returns the next key and consumes it.
func (s *stream) next(ctx context.Context) (e entry, more bool, err error) {
	e, more, err = s.peek(ctx)
	if more {
		s.skip()
	}
	return e, more, err
}

// skip consumes the key that peek has returned.
func (s *stream) skip() {
	s.page[0] = nil
	s.page = s.page[1:]
}

// read reads the next page or piece.
func (s *stream) read(ctx context.Context) error {
	if s.v.paged {
		return s.readPage(ctx)
	}
	err := s.readPiece(ctx)
	if status.Code(err) == codes.Unimplemented {
		s.v.paged = true
		return s.readPage(ctx)
	}
	return err
}

func (s *stream) readPage(ctx context.Context) error {
	limit := s.v.cfg.PageSize
	if limit == 0 {
		limit = pageSize
	}
	response, err := s.v.kv.Get(ctx, s.from, clientv3.WithRange(s.to),
		clientv3.WithLimit(int64(limit)), clientv3.WithRev(s.v.revision))
	if err != nil {
		return err
	}
	s.take(response.Kvs)
	s.ended = !response.More
	return nil
}

// readPiece reads the next piece of the stream. It opens a stream if none is open.
func (s *stream) readPiece(ctx context.Context) error {
	if s.pieces == nil {
		// The stream lives longer than ctx, which bounds the wait for one piece.
		open, cancel := context.WithCancel(context.WithoutCancel(ctx))
		pieces, err := s.v.kv.GetStream(open, s.from, clientv3.WithRange(s.to), clientv3.WithRev(s.v.revision))
		if err != nil {
			cancel()
			return err
		}
		s.pieces, s.cancel = pieces, cancel
	}
	select {
	case piece, more := <-s.pieces:
		if !more {
			s.close()
			s.ended = true
			return nil
		}
		if err := piece.Err(); err != nil {
			s.close()
			return err
		}
		s.take(piece.Kvs)
		return nil
	case <-ctx.Done():
		s.close()
		return ctx.Err()
	}
}

func (s *stream) take(kvs []*mvccpb.KeyValue) {
	s.page = kvs
	if len(kvs) > 0 {
		s.from = etcd.After(kvs[len(kvs)-1].Key)
	}
}

// close ends the stream. It drains the pieces that the client still has, since the client's goroutine waits for that.
func (s *stream) close() {
	if s.pieces == nil {
		return
	}
	s.cancel()
	for range s.pieces {
		continue
	}
	s.pieces = nil
}

// retry calls read, and calls it again after a failure that may pass.
func (v *reading) retry(ctx context.Context, read func(context.Context) error) error {
	for try := 1; ; try++ {
		bounded, cancel := context.WithTimeout(ctx, askTimeout)
		err := read(bounded)
		cancel()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, rpctypes.ErrCompacted), etcd.Classify(err) != etcd.Unknown, try == askTries:
			return err
		}
		if !backoff.Sleep(ctx, askPause) {
			return ctx.Err()
		}
	}
}

func (v *reading) count(family, keys int) {
	v.summary.Families[family].Keys += int64(keys)
	v.summary.Keys += int64(keys)
	if v.cfg.Progress != nil {
		v.cfg.Progress(v.summary.Keys)
	}
}

// lookup is a key to look up, and the function that takes the result; nil if there is no such key.
type lookup struct {
	key  string
	then func(*mvccpb.KeyValue)
}

// want looks a key up later, together with other keys. The functions then are called in the order of the calls of want.
func (v *reading) want(key string, then func(*mvccpb.KeyValue)) {
	v.lookups = append(v.lookups, lookup{key, then})
}

// lookUp looks the wanted keys up once there are enough of them; with enough 0, all of them.
func (v *reading) lookUp(ctx context.Context, enough int) error {
	for len(v.lookups) > 0 && len(v.lookups) >= enough {
		batch := v.lookups[:min(len(v.lookups), lookupBatch)]
		// Several lookups may want the same key, such as the key of a block that several records share.
		at := make(map[string]int, len(batch))
		var gets []clientv3.Op
		for _, l := range batch {
			if _, asked := at[l.key]; !asked {
				at[l.key] = len(gets)
				gets = append(gets, clientv3.OpGet(l.key, clientv3.WithRev(v.revision)))
			}
		}
		var response *clientv3.TxnResponse
		err := v.retry(ctx, func(ctx context.Context) (err error) {
			response, err = v.kv.Txn(ctx).Then(gets...).Commit()
			return err
		})
		if err != nil {
			return fmt.Errorf("look keys up: %w", err)
		}
		for _, l := range batch {
			var kv *mvccpb.KeyValue
			if kvs := response.Responses[at[l.key]].GetResponseRange().Kvs; len(kvs) > 0 {
				kv = kvs[0]
			}
			l.then(kv)
		}
		v.lookups = append(v.lookups[:0], v.lookups[len(batch):]...)
	}
	return nil
}
