package kv

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"licet/internal/depth"
	"licet/kv/embedded/embeddedtest"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// TestPositionsAhead: the feed refuses positions that no response can have returned. They would return nothing until
// the store reaches them, and then skip events.
func TestPositionsAhead(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("ahead")
	l.license(l.store, owner)
	state, err := l.store.feedState(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	read := func(p keyspace.FeedPlace) error {
		_, err := l.store.ReadEvents(t.Context(), owner,
			store.FeedPage{After: store.FeedPosition(p.Text(licensing.SlotOf(owner))), Limit: 1})
		return err
	}
	for _, p := range []keyspace.FeedPlace{{Epoch: state.epoch + 1},
		{Epoch: state.epoch, Revision: state.revision + 1000}, {Epoch: 1 << 62}} {
		if err := read(p); !errors.Is(err, store.ErrBadPosition) {
			t.Errorf("after %+v: %v", p, err)
		}
	}
	for _, p := range []keyspace.FeedPlace{{Epoch: state.epoch}, {Epoch: state.epoch, Revision: state.revision},
		{Epoch: state.epoch - 1, Revision: 1 << 40}} {
		if err := read(p); err != nil {
			t.Errorf("after %+v: %v", p, err)
		}
	}
}

// TestFeedBeforeTheFirstEpoch reads positions in a store in which no epoch has begun: the first recorded events come
// after these positions.
func TestFeedBeforeTheFirstEpoch(t *testing.T) {
	t.Parallel()
	l := &eventsLab{t: t, etcd: embeddedtest.Start(t, t.TempDir())}
	l.store = openStoreOn(t, l.etcd)
	ctx, owner := t.Context(), acct("first")
	now := kvtest.Must(l.store.EventsNow(ctx, owner))(t)
	begin := kvtest.Must(l.store.ReadEvents(ctx, owner, store.FeedPage{Limit: 1}))(t).Next
	for range 2 {
		for _, p := range []store.FeedPosition{now, begin} {
			if got, err := l.after(owner, p); err != nil || len(got) != 0 {
				t.Errorf("after %s: %v, %v", p, got, err)
			}
		}
		l.license(l.store, acct("other"))
	}
	l.license(l.store, owner)
	l.closeEpoch()
	for _, p := range []store.FeedPosition{now, begin} {
		if got, err := l.after(owner, p); err != nil || !slices.Equal(kindsOf(got), []string{"1 license.issued"}) {
			t.Errorf("after %s: %v, %v", p, kindsOf(got), err)
		}
	}
}

// counting counts the reads of ranges, and the keys that etcd counts for them.
type counting struct {
	clientv3.KV
	ranges, keys atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	response, err := c.KV.Get(ctx, key, opts...)
	c.ranges.Add(1)
	if err == nil {
		c.keys.Add(response.Count)
	}
	return response, err
}

// TestSparseFeed reads the feed of an owner with a few events among many events of other owners: the store does not
// search for the few events again in each read.
func TestSparseFeed(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("sparse")
	const events, apart = 100, 1 << 20
	var want []string
	for i := range events {
		want = append(want, l.putEvents(owner, keyspace.Epoch((i+1)*apart), 1, "")...)
	}
	kv := &counting{KV: l.store.etcd.KV}
	l.store.etcd.KV = kv
	state := feedState{epoch: (events + 1) * apart}
	feed, err := l.store.readFeed(t.Context(), owner, keyspace.FeedPlace{Epoch: 1}, state,
		store.FeedPage{Limit: events})
	var got []string
	for _, e := range feed.Events {
		got = append(got, e.ID)
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v\n%s", err, diff)
	}
	if n := kv.ranges.Load(); n > events/2 {
		t.Errorf("%d events are found in %d ranges", events, n)
	}
}

// putEvents writes one key with n events of a new license, and returns their ids. Each event has a device with that
// name.
func (l *eventsLab) putEvents(owner licensing.Owner, e keyspace.Epoch, n int, device string) (ids []string) {
	l.t.Helper()
	made := newLicense(l.t, 0)
	made.Owner = owner
	record := licensing.NewLicense(made, nil, "")
	record.Listening = true
	for i := 1; i < n; i++ {
		record.Events = append(record.Events, licensing.Event{
			Type: licensing.EventDeviceBound, At: kvtest.Time, Sequence: uint64(i +
				1), Actor: licensing.EndUser, License: made,
			Device: &licensing.Device{ID: device, Name: device, Named: true, BoundAt: kvtest.Time,
				LastSeenAt: kvtest.Time},
		})
	}
	name := keyspace.LicenseInEvents(made.Key.ID())
	if _, err := l.store.etcd.Native.Put(l.t.Context(),
		keyspace.EventsKeyOf(owner, keyspace.Location{Epoch: e}, name,
			uint64(n)), string(layout.EncodeEvents(record.Events, keyspace.Location{}))); err != nil {
		l.t.Fatal(err)
	}
	for i := range n {
		ids = append(ids, keyspace.EventID(owner, keyspace.Location{Epoch: e}, name, uint64(i+1)))
	}
	return ids
}

// weighing notes the size of the largest answer.
type weighing struct {
	etcdserverpb.KVClient
	largest atomic.Int64
}

func (w *weighing) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	response, err := w.KVClient.Txn(ctx, request, opts...)
	if size := int64(proto.Size(response)); err == nil && size > w.largest.Load() {
		w.largest.Store(size)
	}
	return response, err
}

// TestPageOfLargeKeys reads a page of keys that contain hundreds of events each, with long names of devices, which end
// users choose. The store keeps only some of the keys at a time.
func TestPageOfLargeKeys(t *testing.T) {
	depth.NotRaced(t)
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("large")
	device := strings.Repeat("d", 250)
	e := l.store.fences.known()
	const small, keys, each = 40, 45, 512
	var ids []string
	for range small {
		ids = append(ids, l.putEvents(owner, e, 1, "")...)
	}
	for range keys {
		ids = append(ids, l.putEvents(owner, e, each, device)...)
	}
	l.closeEpoch()
	scales := &weighing{KVClient: l.store.etcd.Remote}
	l.store.etcd.Remote = scales
	for _, types := range [][]licensing.EventType{nil, {licensing.EventLicenseIssued}} {
		var got []string
		for page := (store.FeedPage{Limit: 100, Types: types}); len(got) < 2*page.Limit; {
			feed := kvtest.Must(l.store.ReadEvents(t.Context(), owner, page))(t)
			for _, e := range feed.Events {
				got = append(got, e.ID)
			}
			if page.After = feed.Next; !feed.More {
				break
			}
		}
		want := ids[:200]
		if types != nil {
			want = nil
			want = append(want, ids[:small]...)
			for i := small; i < len(ids); i += each {
				want = append(want, ids[i])
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of %v:\n%s", types, diff)
		}
	}
	if n := scales.largest.Load(); n > 10<<20 {
		t.Errorf("an answer has %d bytes; the keys of the page have %d", n, keys*each*len(device)*2)
	}
}

// TestFeedFromTheBeginningOfNothing reads a feed whose closed events were all swept: the page has a position to
// continue from, and later events come after it.
func TestFeedFromTheBeginningOfNothing(t *testing.T) {
	t.Parallel()
	l := newEventsLab(t)
	owner := acct("swept")
	l.license(l.store, owner)
	closed := l.closeEpoch()
	kvtest.Must(l.store.raiseTrimmedEpoch(t.Context(), closed-1))(t)
	feed := kvtest.Must(l.store.ReadEvents(t.Context(), owner, store.FeedPage{Limit: 10}))(t)
	if len(feed.Events) != 0 || feed.Next == "" || feed.More {
		t.Errorf("the empty feed is %+v", feed)
	}
	ref := l.license(l.store, owner)
	l.closeEpoch()
	later, err := l.after(owner, feed.Next)
	if err != nil || !slices.Equal(kindsOf(later), []string{"1 license.issued"}) ||
		later[0].License.Key != keyOf(ref) {
		t.Errorf("the later feed is %+v, %v", later, err)
	}
}
