package payment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"licet/licensing"
	"licet/node/store"
	"licet/payment"
)

// gazette is a dashboard that lists its events, a few on a page.
type gazette struct {
	*dashboard
	now func() time.Time

	mu      sync.Mutex
	events  []payment.Event // the newest first
	lists   []string        // the since and after of each call of Events
	looks   map[string]int  // by the id of the object
	fails   map[string]error
	refuses error  // the result of Events; nil: it works
	key     string // with which events are listed
	hangs   string // the id of the object that is not looked at in time
	slow    time.Duration
	flaky   bool // every second look at an object fails
}

const gazettePage = 3

func newGazette(w *fixture) *gazette {
	return &gazette{dashboard: newDashboard(w.bank), now: w.clock.now, looks: map[string]int{},
		fails: map[string]error{}}
}

// print adds an event about an object.
func (g *gazette) print(object payment.Object) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.events = slices.Insert(g.events, 0,
		payment.Event{ID: fmt.Sprint("evt_", len(g.events)), At: g.now(), Object: object})
}

func (g *gazette) Events(_ context.Context, since time.Time, after string) (page payment.EventPage, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lists = append(g.lists, after)
	page.At, page.Key = g.now(), g.key
	from := 0
	if after != "" {
		from = 1 + slices.IndexFunc(g.events, func(e payment.Event) bool { return e.ID == after })
	}
	switch {
	case g.refuses != nil:
		return page, g.refuses
	case g.flaky && len(g.lists)%2 == 0:
		return page, errDown
	case after != "" && from == 0:
		return page, payment.ErrUnknownObject
	}
	for _, event := range g.events[from:] {
		if event.At.Before(since) {
			break
		}
		if page.More = len(page.Events) == gazettePage; page.More {
			break
		}
		page.Events = append(page.Events, event)
	}
	return page, nil
}

func (g *gazette) Look(ctx context.Context, object payment.Object) (payment.State, error) {
	g.mu.Lock()
	g.looks[object.ID]++
	err, hangs := g.fails[object.ID], object.ID == g.hangs
	if g.flaky && g.looks[object.ID]%2 == 0 {
		err = errDown
	}
	g.mu.Unlock()
	time.Sleep(g.slow) // as a provider far away
	if hangs {
		<-ctx.Done()
		return payment.State{}, ctx.Err()
	}
	if err != nil {
		return payment.State{}, err
	}
	return g.dashboard.Look(ctx, object)
}

// counted returns how often events were listed and objects were looked at since the last call.
func (g *gazette) counted() (lists, looks int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, n := range g.looks {
		looks += n
	}
	lists = len(g.lists)
	g.lists, g.looks = nil, map[string]int{}
	return lists, looks
}

// sweep lets two nodes read the events at the same time, when a reading is due.
func (w *fixture) sweep(sources []payment.EventSource, desks ...*payment.Desk) {
	w.t.Helper()
	w.clock.advance(time.Minute)
	var group sync.WaitGroup
	for _, desk := range desks {
		group.Go(func() {
			if err := desk.AskProviderEvents(w.ctx, sources); err != nil {
				w.t.Errorf("read the events: %v", err)
			}
		})
	}
	group.Wait()
}

// TestProviderEvents: refunds without callbacks are found once they are some minutes old, whether the owner has the
// account at the provider alone or shares it. One node reads at a time, and each event once.
func TestProviderEvents(t *testing.T) {
	for name, source := range map[string]payment.EventSource{
		"own account": {Owner: owner},
		"shared account": {Owner: licensing.Owner{Mode: licensing.Test},
			Shared: func(o licensing.Owner) bool { return o == owner }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFixture(t)
			g := newGazette(w)
			_, here := w.open(w.store, g)
			_, there := w.open(w.other, g)
			sweep := func() (lists, looks int) {
				t.Helper()
				w.sweep([]payment.EventSource{source}, here, there)
				return g.counted()
			}
			var orders []licensing.Order
			for i := range 20 {
				o := w.paid()
				orders = append(orders, o)
				g.print(g.set(o, fmt.Sprint("re_", i), "", 30, payment.OutcomeDone))
			}
			g.print(payment.Object{Kind: payment.ObjectRefund, ID: "re_foreign"})
			g.print(payment.Object{Kind: payment.ObjectRefund, ID: "re_foreign"}) // of other programs of the shop
			if lists, looks := sweep(); lists != 8 || looks != 0 {
				t.Errorf("new events: %d pages, %d questions", lists, looks)
			}
			w.clock.advance(6 * time.Minute)
			sweep()
			for i, o := range orders {
				if now := w.now(o); now.Refunded != 30 || now.Refunds != 1 {
					t.Errorf("order %d: %d of it is refunded, in %d refunds", i, now.Refunded, now.Refunds)
				}
			}
			w.clock.advance(time.Hour)
			if lists, looks := sweep(); lists > 1 || looks > 0 {
				t.Errorf("nothing new: %d pages, %d questions", lists, looks)
			}
			if err := errors.Join(here.AskProviderEvents(w.ctx, []payment.EventSource{source}),
				there.AskProviderEvents(w.ctx, []payment.EventSource{source})); err != nil {
				t.Error(err)
			}
			if lists, _ := g.counted(); lists != 0 {
				t.Errorf("%d pages are read at once after a reading", lists)
			}
			w.verify()
		})
	}
}

// TestProviderEventsInReadings: a reading ends while there is time for the questions of a page. Then another node
// goes on.
func TestProviderEventsInReadings(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	var desks []*payment.Desk
	for _, at := range []store.Store{w.store, w.other} {
		_, desk := w.open(at, g)
		desks = append(desks, desk)
	}
	const pages = 12
	for i := range pages * gazettePage {
		g.print(payment.Object{Kind: payment.ObjectRefund, ID: fmt.Sprint("re_", i)})
	}
	w.clock.advance(6 * time.Minute)
	g.slow = 100 * time.Millisecond
	readings, read := 0, 0
	for ; read < pages && readings < pages; readings++ {
		w.clock.advance(time.Minute)
		short, cancel := context.WithTimeout(w.ctx, 11*time.Second) // one second to begin pages in
		began := time.Now()
		err := desks[readings%2].AskProviderEvents(short, []payment.EventSource{{Owner: owner}})
		took := time.Since(began)
		cancel()
		if err != nil || took > 6*time.Second {
			t.Errorf("reading %d: %v, after %s", readings, err, took)
		}
		lists, looks := g.counted()
		if lists == 0 || looks != lists*gazettePage {
			t.Errorf("reading %d: %d pages, %d questions", readings, lists, looks)
		}
		read += lists
	}
	if read != pages || readings < 2 {
		t.Errorf("%d pages in %d readings", read, readings)
	}
}

// TestProviderEventsGoOn: if the time for a reading is over before the events, the sweep goes on with another reading.
func TestProviderEventsGoOn(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	var orders []licensing.Order
	for i := range 2*gazettePage + 1 {
		o := w.paid()
		orders = append(orders, o)
		g.print(g.set(o, fmt.Sprint("re_", i), "", 30, payment.OutcomeDone))
	}
	w.clock.advance(6 * time.Minute)
	short, cancel := context.WithTimeout(w.ctx, 9*time.Second) // a reading reads one page
	defer cancel()
	if err := desk.AskProviderEvents(short, []payment.EventSource{{Owner: owner}}); err != nil {
		t.Error(err)
	}
	for i, o := range orders {
		if now := w.now(o); now.Refunded != 30 {
			t.Errorf("order %d: %d of it is refunded", i, now.Refunded)
		}
	}
}

// TestProviderEventsOfOthers: an account at the provider that others share, or whose owner has no id, says nothing
// about an owner who has an account of the own.
func TestProviderEventsOfOthers(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	o := w.paid()
	for id, shared := range map[string]func(licensing.Owner) bool{
		"re_1": func(licensing.Owner) bool { return false }, "re_2": nil,
	} {
		g.print(g.set(o, id, "", 30, payment.OutcomeDone))
		w.clock.advance(6 * time.Minute)
		w.sweep([]payment.EventSource{{Owner: licensing.Owner{Mode: licensing.Test}, Shared: shared}}, desk)
		if _, looks := g.counted(); looks == 0 || w.now(o).Refunded != 0 {
			t.Errorf("after %d questions about %s, the order is %+v", looks, id, w.now(o))
		}
	}
}

// TestProviderEventsAgain: an object that can't be recorded keeps no other one waiting, and is asked about again for
// three days, and ten times at least.
func TestProviderEventsAgain(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: owner}}
	late, never, well := w.paid(), w.unpaidSubscription(), w.paid()
	for id, o := range map[string]licensing.Order{"re_late": late, "re_never": never, "re_well": well} {
		g.print(g.set(o, id, "", 30, payment.OutcomeDone))
	}
	g.fails["re_late"] = errDown
	w.clock.advance(6 * time.Minute)
	w.sweep(sources, desk)
	if w.now(well).Refunded != 30 || w.now(late).Refunded != 0 {
		t.Errorf("one is down: %+v", w.now(well))
	}
	delete(g.fails, "re_late")
	w.sweep(sources, desk)
	if w.now(late).Refunded != 30 {
		t.Errorf("it is up again: %+v", w.now(late))
	}
	w.clock.advance(3 * 24 * time.Hour)
	g.counted()
	for range 15 {
		w.sweep(sources, desk)
	}
	if _, looks := g.counted(); looks != 9 { // after the one before
		t.Errorf("after three days without a try, %d questions", looks)
	}
}

// TestProviderEventsStop: while too many objects can't be recorded, no event is passed over. A page whose event the
// provider has forgotten begins anew.
func TestProviderEventsStop(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	sources := []payment.EventSource{{Owner: owner}}
	o := w.paid()
	g.print(g.set(o, "re_first", "", 30, payment.OutcomeDone))
	for i := range 2 * store.MaxProviderEventsAgain {
		id := fmt.Sprint("re_down_", i)
		g.fails[id] = errDown
		g.print(payment.Object{Kind: payment.ObjectRefund, ID: id})
	}
	w.clock.advance(6 * time.Minute)
	for reading := range 5 {
		w.clock.advance(time.Minute)
		if err := desk.AskProviderEvents(w.ctx, sources); reading > 0 && !errors.Is(err, providerFailed) {
			t.Errorf("too many fail: %v", err)
		}
	}
	if w.now(o).Refunded != 0 {
		t.Error("the first event is read before the later ones")
	}
	g.mu.Lock()
	g.events, g.fails = g.events[len(g.events)-1:], map[string]error{}
	g.mu.Unlock()
	w.sweep(sources, desk)
	if w.now(o).Refunded != 30 {
		t.Errorf("the events are forgotten: %+v", w.now(o))
	}
}

// TestProviderEventsForbidden: if the provider's key may not read events, the sweep does not fail, and asks once an
// hour.
func TestProviderEventsForbidden(t *testing.T) {
	w := newFixture(t)
	g := newGazette(w)
	_, desk := w.open(w.store, g)
	g.refuses = payment.ErrForbidden
	for range 60 {
		w.sweep([]payment.EventSource{{Owner: owner}}, desk)
	}
	if lists, _ := g.counted(); lists != 1 {
		t.Errorf("%d questions in an hour", lists)
	}
	w.sweep([]payment.EventSource{{Owner: owner}}, desk)
	if lists, _ := g.counted(); lists != 1 {
		t.Errorf("%d questions after an hour", lists)
	}
}
