package deliveries

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/claimwrite"
	"licet/kv/internal/etcd"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

const (
	// webhooksPage is how many owners' endpoints are read at a time.
	webhooksPage = 100
	// replayTries bounds how often AddReplay tries while others change the owner's record:
	// a replay for any endpoint of the owner does.
	replayTries = 32
	// pagesAtOnce bounds the pages of the log that one listing reads.
	pagesAtOnce = 8
)

// Records is the store of records that deliveries stand beside.
type Records interface {
	Client() *etcd.Client
	Incarnation() store.Incarnation
	// NextWriter returns the writer of the next swap.
	NextWriter() layout.Writer
	// NoteGrowth adds a change, at a revision of the store, to what an owner stores.
	NoteGrowth(owner licensing.Owner, revision int64, size licensing.Size)
}

// Store keeps the state of messages to endpoints. It is safe for concurrent use.
type Store struct {
	etcd        *etcd.Client
	incarnation store.Incarnation
	nextWriter  func() layout.Writer
	noteGrowth  func(licensing.Owner, int64, licensing.Size)
}

// New returns the deliveries beside a store of records.
func New(on Records) *Store {
	return &Store{
		etcd: on.Client(), incarnation: on.Incarnation(), nextWriter: on.NextWriter, noteGrowth: on.NoteGrowth,
	}
}

// WebhooksMark returns the revision at which endpoints were last changed, or a replay was last requested.
func (s *Store) WebhooksMark(ctx context.Context) (int64, error) {
	response, err := s.etcd.List(ctx, "webhooks_mark", keyspace.WebhooksMark, clientv3.WithKeysOnly())
	if err != nil || len(response.Kvs) == 0 {
		return 0, err
	}
	return response.Kvs[0].ModRevision, nil
}

// WatchWebhooks calls wake whenever endpoints may have changed; see Watch.
func (s *Store) WatchWebhooks(ctx context.Context, wake func()) {
	s.etcd.Watch(ctx, keyspace.WebhooksMark, wake)
}

// AllWebhooks reads the endpoints of all owners. For an owner whose endpoints can't be read it yields an error, and
// then continues.
func (s *Store) AllWebhooks(ctx context.Context) iter.Seq2[store.OwnerWebhooks, error] {
	return func(yield func(store.OwnerWebhooks, error) bool) {
		for from, more := "", true; more; {
			page, err := s.etcd.PageInSlots(ctx, "list_webhooks", etcd.Family(keyspace.WebhooksFamily), from,
				webhooksPage, 0)
			if err != nil {
				yield(store.OwnerWebhooks{}, err)
				return
			}
			for _, kv := range page.Kvs {
				webhooks, err := s.readWebhooks(kv)
				if !yield(store.OwnerWebhooks{Webhooks: webhooks, Changed: kv.ModRevision,
					Revision: page.Revision}, err) {
					return
				}
			}
			from, more = page.Next, page.Next != ""
		}
	}
}

func (s *Store) readWebhooks(kv *mvccpb.KeyValue) (licensing.Webhooks, error) {
	owner, ok := keyspace.OwnerIn(kv.Key, keyspace.WebhooksFamily)
	if !ok {
		return licensing.Webhooks{}, layout.Internal(fmt.Errorf("a key of webhooks: %w", layout.ErrMalformed))
	}
	stored, err := layout.DecodeWebhooks(owner, kv.Value)
	if s.etcd.Unreadable(keyspace.WebhooksKey(owner), "w/"+keyspace.OwnerPath(owner), err) {
		return licensing.Webhooks{}, layout.Internal(fmt.Errorf("the webhooks of %s: %w", owner.AccountID, err))
	}
	return stored.Webhooks, nil
}

// Progresses reads how far endpoints are. It leaves out endpoints without a progress that can be read.
func (s *Store) Progresses(ctx context.Context, endpoints ...string) (map[string]store.DeliveryProgress, error) {
	found := make(map[string]store.DeliveryProgress)
	for some := range slices.Chunk(endpoints, etcd.MaxOps) {
		keys := make([]string, len(some))
		for i, endpoint := range some {
			keys[i] = keyspace.ProgressKey(endpoint)
		}
		kvs, err := s.etcd.GetAll(ctx, "read_progress", keys)
		if err != nil {
			return nil, err
		}
		for i, kv := range kvs {
			if kv == nil {
				continue
			}
			if stored := s.readProgress(some[i], kv.Value); stored != nil {
				found[some[i]] = stored.Progress
			}
		}
	}
	return found, nil
}

// AddReplay asks for events to be delivered again, unless too many replays wait. One
// of the same id that waits already is this one; so is one whose claims this call has
// written, since the replay may be done by now. The transaction writes the owner's record
// again, unchanged: by the record's new revision the node that delivers to the endpoint finds
// out that it must look for replays.
func (s *Store) AddReplay(
	ctx context.Context, owner licensing.Owner, endpoint string, replay store.Replay, claims ...store.Write,
) error {
	record, key, prefix := keyspace.WebhooksKey(owner), keyspace.ReplayKey(endpoint,
		replay.ID), keyspace.DeliveriesPrefix(endpoint, keyspace.KeyOfReplay)
	me := s.nextWriter()
	along := claimwrite.Of(claims, me)
	value := string(layout.EncodeReplay(owner, &replay))
	growth := along.Growth.Plus(layout.SizeOf(len(key), len(value)))
	inDoubt := false
	for try := range replayTries {
		read, err := s.etcd.Txn(ctx, "read_replays", nil, append([]clientv3.Op{
			clientv3.OpGet(record), clientv3.OpGet(key, clientv3.WithKeysOnly()),
			clientv3.OpGet(prefix, clientv3.WithPrefix(), clientv3.WithCountOnly()),
		}, along.Gets...), nil)
		if err != nil {
			return etcd.GaveUp(inDoubt, err)
		}
		claimed := read.Responses[3:]
		made, err := along.FindSwap(claimed, me)
		switch {
		case err != nil:
			return err
		case made == layout.SwapLanded:
			s.noteGrowth(owner, read.Header.Revision, growth)
			return nil
		case made == layout.SwapEvicted && inDoubt:
			return etcd.GaveUp(inDoubt, layout.ErrEvicted)
		case along.Lost(claimed):
			return store.ErrClaimTaken
		}
		stored := etcd.First(read.Responses, 0)
		at, err := layout.EndpointAt(owner, stored.GetValue(), endpoint, read.Header.Revision)
		switch {
		case err != nil:
			return err
		case !at.Found:
			return licensing.ErrWebhookNotFound
		case etcd.First(read.Responses, 1) != nil:
			return nil
		case read.Responses[2].GetResponseRange().Count >= store.MaxReplays:
			return store.ErrTooManyReplays
		}
		// No replay was added since they were counted. It does not matter if some have ended.
		none := clientv3.Compare(clientv3.ModRevision(prefix).WithPrefix(), "<", read.Header.Revision+1)
		response, err := s.etcd.Resolve(ctx, "add_replay", &inDoubt,
			append([]clientv3.Cmp{none, clientv3.Compare(clientv3.ModRevision(record), "=", stored.ModRevision)},
				along.Compares...),
			append([]clientv3.Op{
				clientv3.OpPut(key, value), clientv3.OpPut(keyspace.WebhooksMark, ""),
				clientv3.OpPut(record, "", clientv3.WithIgnoreValue()),
			}, along.Puts...), nil)
		switch {
		case err != nil:
			return err
		case response.Succeeded:
			s.noteGrowth(owner, response.Header.Revision, growth)
			return nil
		}
		etcd.PauseBeforeResend(ctx, try)
	}
	return etcd.GaveUp(inDoubt, fmt.Errorf("other requests keep changing the endpoint"))
}

// A position in the listing of an endpoint's deliveries: after the pending or dead message of an event, or in the log,
// after so many of the deliveries of a page.
const (
	listPending = "p"
	listDead    = "d"
	listLog     = "l"
)

// Deliveries reads a page of messages with their states: pending and dead messages in the order of their events, and
// delivered messages from the latest on.
func (s *Store) Deliveries(
	ctx context.Context, endpoint string, page store.DeliveryPage,
) (found store.Deliveries, err error) {
	stage, after := listPending, ""
	if page.After != "" {
		stage, after = page.After[:1], page.After[1:]
	}
	if status := page.Status; status != "" {
		only := map[store.DeliveryStatus]string{store.DeliveryPending: listPending, store.DeliveryDead: listDead,
			store.DeliveryDelivered: listLog}[status]
		if only == "" || page.After != "" && only != stage {
			return found, store.ErrBadPosition
		}
		stage = only
	}
	limit := max(1, min(page.Limit, pageSize))
	for {
		var some []store.Delivery
		next := ""
		switch stage {
		case listPending:
			some, next, err = s.listDeliveries(ctx, endpoint, store.DeliveryPending, after, limit-len(found.Items))
		case listDead:
			some, next, err = s.listDeliveries(ctx, endpoint, store.DeliveryDead, after, limit-len(found.Items))
		case listLog:
			some, next, err = s.readLog(ctx, endpoint, after, limit-len(found.Items))
		default:
			err = store.ErrBadPosition
		}
		if err != nil {
			return store.Deliveries{}, err
		}
		found.Items = append(found.Items, some...)
		switch {
		case next != "":
			found.Next = stage + next
			return found, nil
		case page.Status != "" || stage == listLog:
			return found, nil
		}
		stage, after = map[string]string{listPending: listDead, listDead: listLog}[stage], ""
		if len(found.Items) >= limit {
			found.Next = stage
			return found, nil
		}
	}
}

// listDeliveries reads deliveries of one kind. It also returns the position after which there are more.
func (s *Store) listDeliveries(
	ctx context.Context, endpoint string, status store.DeliveryStatus, after string, limit int,
) ([]store.Delivery, string, error) {
	some, more, err := s.readDeliveries(ctx, endpoint, status, after, limit)
	if err != nil || !more {
		return some, "", err
	}
	return some, some[len(some)-1].EventID, nil
}

// readDeliveries reads messages that are pending or were given up, after a position.
func (s *Store) readDeliveries(
	ctx context.Context, endpoint string, status store.DeliveryStatus, after string, limit int,
) (some []store.Delivery, more bool, err error) {
	kind := byte(keyspace.KeyOfPending)
	if status == store.DeliveryDead {
		kind = keyspace.KeyOfDead
	}
	prefix := keyspace.DeliveriesPrefix(endpoint, kind)
	from := prefix
	if after != "" {
		from = etcd.After(prefix + after)
	}
	page, err := s.etcd.Page(ctx, "list_deliveries", from, clientv3.GetPrefixRangeEnd(prefix), int64(limit), 0)
	if err != nil {
		return nil, false, err
	}
	for _, kv := range page.Kvs {
		some = append(some, s.readDelivery(endpoint, string(kv.Key[len(prefix):]), status, kv.Value))
	}
	return some, page.More, nil
}

// readLog reads what was delivered, the latest first. A page of the listing may be
// short: the pages of a log may have one delivery each.
func (s *Store) readLog(
	ctx context.Context, endpoint, after string, limit int,
) (some []store.Delivery, next string, err error) {
	value, err := s.etcd.Get(ctx, "read_progress", keyspace.ProgressKey(endpoint))
	if err != nil || value == nil {
		return nil, "", err
	}
	stored := s.readProgress(endpoint, value)
	if stored == nil {
		return nil, "", nil
	}
	number, seen, ok := readLogPlace(after)
	if !ok {
		return nil, "", store.ErrBadPosition
	}
	if after == "" || number >= stored.Log.Next() {
		number, seen = stored.Log.Next()-1, 0
	}
	if len(stored.Log.Counts) == 0 || number < stored.Log.First {
		return nil, "", nil
	}
	var keys []string
	for at := number; len(keys) < pagesAtOnce && at >= stored.Log.First && at <= number; at-- {
		keys = append(keys, keyspace.PageKey(endpoint, at))
	}
	pages, err := s.etcd.GetAll(ctx, "read_log", keys)
	if err != nil {
		return nil, "", err
	}
	for _, kv := range pages {
		if kv == nil {
			return some, "", nil // the page was pushed out of the log meanwhile, with all earlier pages
		}
		id := kv.Key[len(kv.Key)-8:]
		number = binary.BigEndian.Uint64(id)
		logged := s.readPage(endpoint, kv.Value, string(id))
		for at := len(logged) - 1 - seen; at >= 0; at-- {
			if len(some) == limit {
				return some, logPlace(number, len(logged)-1-at), nil
			}
			some = append(some, logged[at])
		}
		seen = 0
	}
	if number > stored.Log.First {
		return some, logPlace(number-1, 0), nil
	}
	return some, "", nil
}

func logPlace(number uint64, seen int) string {
	return strconv.FormatUint(number, 10) + "." + strconv.Itoa(seen)
}

func readLogPlace(text string) (number uint64, seen int, ok bool) {
	if text == "" {
		return 0, 0, true
	}
	page, count, found := strings.Cut(text, ".")
	number, err := strconv.ParseUint(page, 10, 64)
	seen, err2 := strconv.Atoi(count)
	return number, seen, found && err == nil && err2 == nil && seen >= 0 && logPlace(number, seen) == text
}
