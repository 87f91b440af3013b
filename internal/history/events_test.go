package history

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/protobuf/encoding/protowire"

	"licet/kv"
	"licet/licensing"
	"licet/node/store"
)

// listening reports whether a run's owner listens to activations.
type listening int

const (
	listensNever   listening = iota // the owner does not listen
	listensAlways                   // from the beginning
	listensLater                    // from the middle
	listeningKinds                  // how many there are
)

// eventAt is an event as it is stored.
type eventAt struct {
	record   string // a license's 16 bytes behind an l, an order's number behind an o, or see usageRecord
	sequence uint64
	kind     licensing.EventType
	actor    string
	at       int64
	device   string
	boundAt  int64
	max      int    // device limit of its license, right after the event
	current  int    // devices of its license, right after the event
	previous string // the device that has become this one
	days     string // days_before_end of license.expiring
	revision int64
}

// eventLocation is where a record's events stand: an epoch, and a block that several records
// share, or none.
type eventLocation struct {
	epoch uint64
	block uint32
}

// latestAt is what a record says of its latest event.
type latestAt struct {
	location eventLocation
	sequence uint64
}

// eventsOf contains the events of one record in one revision.
type eventsOf struct {
	location, before eventLocation // before: of the record's events before
	revision         int64
	events           []eventAt
}

// kinds are the types that have stored numbers. All others are stored as text.
var kinds = []licensing.EventType{
	1: "order.created", "order.paid", "order.expired", "order.canceled", "order.refunded",
	"license.issued", "license.suspended", "license.reinstated", "license.revoked", "license.renewed",
	"license.updated",
	"license.expired", "license.activated", "license.limit_reached", "device.bound", "device.removed",
}

// addKey adds the events of a key. rest is what follows the owner in it.
func (t *timeline) addKey(rest string, event *clientv3.Event) error {
	block := len(rest) == 8+1+4 && rest[8] == 'b'
	if !block && len(rest) < 8+1+5 {
		return fmt.Errorf("a key of events ends with %q", rest)
	}
	if !event.IsCreate() {
		t.changed = append(t.changed, rest)
		return nil
	}
	at := eventLocation{epoch: binary.BigEndian.Uint64([]byte(rest))}
	if !block {
		last := binary.BigEndian.Uint64(append([]byte{0, 0, 0}, rest[len(rest)-5:]...))
		return t.addEvents(rest[8:len(rest)-5], last, at, event.Kv.Value, event.Kv.ModRevision)
	}
	at.block = binary.BigEndian.Uint32([]byte(rest[9:]))
	m, err := parse(event.Kv.Value[min(1, len(event.Kv.Value)):])
	if err != nil {
		return err
	}
	for _, of := range m.bytes[1] {
		run, err := parse(of)
		if err != nil {
			return err
		}
		if err := t.addEvents(run.text(1), run.varints[2], at, []byte(run.text(3)), event.Kv.ModRevision); err != nil {
			return err
		}
	}
	return nil
}

// addEvents adds the events of one record in one revision.
func (t *timeline) addEvents(record string, last uint64, at eventLocation, value []byte, revision int64) error {
	k := &eventsOf{location: at, revision: revision}
	m, err := parse(value[min(1, len(value)):])
	if err != nil {
		return err
	}
	switch before := m.text(3); {
	case before == "":
	case len(before) != locationLength:
		return fmt.Errorf("the location of the events before has %d bytes", len(before))
	default:
		k.before = readLocation(before)
	}
	facts, err := parse([]byte(m.text(1))[min(1, len(m.text(1))):])
	if err != nil {
		return err
	}
	many := m.bytes[2]
	for i, one := range many {
		e, err := parse(one)
		if err != nil {
			return err
		}
		d, err := decodeDevice([]byte(e.text(7)), facts.milli(10))
		if err != nil {
			return err
		}
		after := facts
		if own := e.text(6); own != "" {
			if after, err = parse([]byte(own)[1:]); err != nil {
				return err
			}
		}
		current := int(after.varints[7])
		if count := int(e.varints[5]); count > 0 {
			current = count - 1
		}
		previous, days := "", ""
		for _, of := range e.bytes[9] {
			member, err := parse(of)
			if err != nil {
				return err
			}
			switch member.text(2) {
			case "previous_device_id":
				previous, _ = strconv.Unquote(member.text(3))
			case "days_before_end":
				days = member.text(3)
			}
		}
		k.events = append(k.events, eventAt{
			record: record, sequence: last - uint64(len(many)-1-i), actor: e.text(4), revision: k.revision,
			kind: cmp.Or(licensing.EventType(e.text(8)), kinds[e.varints[1]]),
			at:   m.milli(4) + protowire.DecodeZigZag(e.varints[2]), device: d.id, boundAt: d.boundAt,
			max: int(after.varints[6]), current: current, previous: previous, days: days,
		})
	}
	t.keysOf[record] = append(t.keysOf[record], k)
	return nil
}

const locationLength = 8 + 4

// readLocation reads a location at the beginning of a field.
func readLocation(field string) eventLocation {
	return eventLocation{binary.BigEndian.Uint64([]byte(field)), binary.BigEndian.Uint32([]byte(field[8:]))}
}

// latest reads what a record says of its latest event.
func latest(field string) (at latestAt) {
	if len(field) > locationLength {
		at.location = readLocation(field)
		at.sequence, _ = protowire.ConsumeVarint([]byte(field[locationLength:]))
	}
	return at
}

// listen makes the run's owner listen to activations, by an endpoint of webhooks that
// wants them.
func (r *run) listen() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	ring, err := testRing()
	if err != nil {
		return err
	}
	master := ring.Current()
	db, ref := r.maker.opened, licensing.WebhooksRef(r.owner)
	subscribe := licensing.CreateEndpoint{Owner: r.owner, Endpoint: licensing.Endpoint{
		ID: licensing.NewEndpointID(r.owner, ulid.Make().String()), URL: "https://shop.example/licet",
		SecretVersion: 1, MasterID: master.ID, Since: "pos_0",
	}}
	for {
		if err := db.UseMaster(ctx, master); err != nil && ctx.Err() != nil {
			return err
		}
		loaded, err := db.Load(ctx, store.Want{Ref: ref})
		if err == nil {
			if _, err := licensing.Apply(&loaded[0].Record, subscribe, time.Now()); err != nil {
				return err
			}
			var outcome store.Outcome
			outcome, err = db.Commit(ctx,
				store.Change{Writes: []store.Write{{Ref: ref, Token: loaded[0].Token, Record: loaded[0].Record}}})
			if err == nil && outcome.Landed {
				break
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("listen: %w", errors.Join(err, ctx.Err()))
		}
	}
	stored, err := r.etcd.client.Get(ctx, "lc2/cell/f/"+r.owner.AccountID+"/t/")
	if err != nil {
		return err
	}
	r.listensAfter = stored.Kvs[0].CreateRevision
	return nil
}

// beginEpochs begins epochs of events much more often than nodes do, and in the
// middle lets the owner begin to listen, until ctx ends.
func (r *run) beginEpochs(ctx context.Context) error {
	random := r.random("epochs")
	for {
		if r.listening == listensLater && r.listensAfter == 0 && r.done() > 300 {
			if err := r.listen(); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(10+random.IntN(150)) * time.Millisecond):
		}
		if err := r.closeEpoch(); err != nil {
			return err
		}
	}
}

// closeEpoch begins an epoch.
func (r *run) closeEpoch() error {
	ctx, cancel := context.WithTimeout(context.Background(), busyTime)
	defer cancel()
	_, err := r.etcd.client.Put(ctx, "lc2/cell/epoch", "")
	return err
}

// follower reads the feed from page to page, at any node, whatever goes wrong.
type follower struct {
	run    *run
	random *rand.Rand
	after  store.FeedPosition
	seen   []store.RecordedEvent
}

// read reads a page at a process. What fails is asked for again.
func (f *follower) read(ctx context.Context, db store.Events) (more bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	page, err := db.ReadEvents(ctx, f.run.owner, store.FeedPage{After: f.after, Limit: 1 + f.random.IntN(40)})
	if err != nil {
		return true, err
	}
	f.seen = append(f.seen, page.Events...)
	f.after = page.Next
	if n := len(page.Events); n > 0 && f.random.IntN(2) == 0 {
		// As a reader that knows only events, perhaps an event in the middle.
		n = 1 + f.random.IntN(n)
		f.seen = f.seen[:len(f.seen)-len(page.Events)+n]
		f.after = store.FeedPosition(page.Events[n-1].ID)
		return true, nil
	}
	return page.More, nil
}

// follow reads the feed until ctx ends.
func (f *follower) follow(ctx context.Context) {
	for ctx.Err() == nil {
		p := f.run.anyProcess(f.random)
		if more, err := f.read(p.life, p.opened); err == nil && more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(1+f.random.IntN(20)) * time.Millisecond):
		}
	}
}

// patiently calls ask until ask succeeds, ctx ends, or an error is neither ErrUnavailable nor ErrOutcomeUnknown: the
// machine may be busy, and a fault may have taken the answer. A second call of ask must have the effect of the first.
func patiently(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		passing := errors.Is(err, licensing.ErrUnavailable) || errors.Is(err, licensing.ErrOutcomeUnknown)
		if err == nil || ctx.Err() != nil || !passing {
			return err
		}
	}
}

// finish reads the rest of the feed, then the whole feed anew, and the history of each record.
func (r *run) finish(f *follower) error {
	if err := r.closeEpoch(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	for more := true; more; {
		if err := patiently(ctx, func() (err error) {
			more, err = f.read(ctx, r.maker.opened)
			return err
		}); err != nil {
			return fmt.Errorf("read the feed to its end: %w", err)
		}
	}
	r.followed = f.seen
	for page := (store.FeedPage{Limit: 100}); ; {
		var got store.Feed
		if err := patiently(ctx, func() (err error) {
			got, err = r.maker.opened.ReadEvents(ctx, r.owner, page)
			return err
		}); err != nil {
			return fmt.Errorf("read the feed from its beginning: %w", err)
		}
		r.feed = append(r.feed, got.Events...)
		if page.After = got.Next; !got.More {
			break
		}
	}
	return r.readHistories(ctx)
}

// readHistories reads the history of each record of the feed, eight at a time: a read mostly waits, and there are
// hundreds.
func (r *run) readHistories(ctx context.Context) error {
	refs := map[string]licensing.Ref{}
	for _, e := range r.feed {
		record, ref := recordOf(e)
		refs[record] = ref
	}
	records := make(chan string, len(refs))
	for record := range refs {
		records <- record
	}
	close(records)
	r.histories = make(map[string][]store.RecordedEvent, len(refs))
	var mu sync.Mutex
	var failed error
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for record := range records {
				var all []store.RecordedEvent
				err := patiently(ctx, func() (err error) {
					all, err = readBack(ctx, r.maker.opened, refs[record])
					return err
				})
				mu.Lock()
				if err != nil && failed == nil {
					failed = fmt.Errorf("read the history of %q: %w", refs[record].ID, err)
				}
				r.histories[record] = all
				mu.Unlock()
			}
		})
	}
	group.Wait()
	return failed
}

// recordOf names the record of an event as keys of events do.
func recordOf(e store.RecordedEvent) (string, licensing.Ref) {
	if e.License != nil {
		id := e.License.Key.ID()
		return licenseRecord(id), licensing.LicenseRef(e.License.Key)
	}
	if e.Order != nil {
		return "o" + strings.TrimPrefix(e.Order.OrderNo, "ord_"), licensing.OrderRef(e.Order.Owner, e.Order.OrderNo)
	}
	return usageRecord(e.Owner.AccountID), licensing.UsageRef(e.Owner)
}

// readBack reads a record's history, and turns it the right way round.
func readBack(ctx context.Context, db *kv.Store, ref licensing.Ref) ([]store.RecordedEvent, error) {
	var all []store.RecordedEvent
	for page := (store.HistoryPage{Limit: 7}); ; {
		got, err := db.History(ctx, ref, page)
		if err != nil {
			return nil, err
		}
		all = append(all, got.Events...)
		if page.Before = got.Next; got.Next == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}
