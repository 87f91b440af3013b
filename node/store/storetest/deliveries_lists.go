package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"licet/licensing"
	"licet/node/store"
)

func testDeliveryList(d deliveries) {
	s := d.open(d.t)
	if all := d.all(s, "", 10); len(all) > 0 {
		d.t.Errorf("a new endpoint has %+v", all)
	}
	w, _ := d.work(s)
	lease := d.acquire(w)
	var done store.Checkpoint
	want := make(map[store.DeliveryStatus][]store.Delivery)
	for n := range 5 {
		p, x := message(n, 1), message(10+n, 2)
		done.Pending, done.Dead = append(done.Pending, p), append(done.Dead, x)
		want[store.DeliveryPending] = append(want[store.DeliveryPending], as(store.DeliveryPending, p))
		want[store.DeliveryDead] = append(want[store.DeliveryDead], as(store.DeliveryDead, x))
	}
	d.checkpoint(lease, done)
	for n := range 12 {
		var some []store.Delivery
		for i := range n % 4 {
			some = append(some, message(100+10*n+i, 1))
		}
		d.checkpoint(lease, store.Checkpoint{Delivered: some})
		for _, m := range some {
			want[store.DeliveryDelivered] = slices.Insert(want[store.DeliveryDelivered], 0, asDelivered(m))
		}
	}
	want[""] = slices.Concat(want[store.DeliveryPending], want[store.DeliveryDead], want[store.DeliveryDelivered])
	for status, all := range want {
		for limit := 1; limit < len(all)+2; limit++ {
			d.equal(fmt.Sprintf("deliveries with status %q, %d at a time", status, limit), d.all(s, status, limit), all)
		}
	}
	for _, page := range []store.DeliveryPage{
		{After: "x"}, {After: "lx"}, {After: "l1"}, {After: "l1.-1"}, {After: "l01.1"}, {After: "l.1"}, {Status: "odd"},
		{Status: store.DeliveryDead, After: "pevt_0000001"}, {Status: store.DeliveryPending, After: "l1.0"},
	} {
		page.Limit = 5
		if got, err := s.Deliveries(d.context(), d.endpoint, page); !errors.Is(err, store.ErrBadPosition) {
			d.t.Errorf("%+v gives %+v, %v", page, got, err)
		}
	}
}

// testDeliveryLog delivers more messages than the log keeps, in small pages and in large ones.
func testDeliveryLog(d deliveries) {
	s := d.open(d.t)
	w, _ := d.work(s)
	lease := d.acquire(w)
	var delivered []store.Delivery
	step := func(count int) {
		var some []store.Delivery
		for range count {
			some = append(some, message(len(delivered)+len(some), 1))
		}
		d.checkpoint(lease, store.Checkpoint{Delivered: some})
		for _, m := range some {
			delivered = append(delivered, asDelivered(m))
		}
	}
	latest := func(count int) []store.Delivery {
		some := slices.Clone(delivered[len(delivered)-count:])
		slices.Reverse(some)
		return some
	}
	for range 105 {
		step(1)
	}
	before, err := s.Deliveries(d.context(), d.endpoint, store.DeliveryPage{Status: store.DeliveryDelivered, Limit: 5})
	for errors.Is(err, licensing.ErrUnavailable) {
		before, err = s.Deliveries(d.context(), d.endpoint,
			store.DeliveryPage{Status: store.DeliveryDelivered, Limit: 5})
	}
	d.equal("100 pages", d.all(s, store.DeliveryDelivered, 50), latest(100))
	step(900)
	d.equal("900 and some more", d.all(s, store.DeliveryDelivered, 90), latest(999))
	step(150)
	d.equal("a page after those", d.all(s, store.DeliveryDelivered, 90), latest(1050))
	step(850)
	d.equal("1,000", d.all(s, store.DeliveryDelivered, 90), latest(1000))
	if err != nil || before.Next == "" {
		d.t.Fatalf("%+v, %v", before, err)
	}
	// A reader that continues from a removed page is at the end.
	d.again(func() error {
		got, err := s.Deliveries(d.context(), d.endpoint,
			store.DeliveryPage{Status: store.DeliveryDelivered, Limit: 5, After: before.Next})
		if err == nil && (len(got.Items) > 0 || got.Next != "") {
			d.t.Errorf("behind what is gone is %+v", got)
		}
		return err
	})
}

func testAllWebhooks(d deliveries) {
	s := d.open(d.t)
	ctx, cancel := context.WithCancel(context.Background())
	woken, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		s.WatchWebhooks(ctx, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	}()
	<-woken
	other := d.fixture.owner()
	want := map[licensing.Owner][]string{d.owner: {d.endpoint}, other: {"we_01", "we_02"}}
	d.put(d.t, other, []licensing.Endpoint{{ID: "we_01"}, {ID: "we_02"}})
	select {
	case <-woken:
	case <-time.After(20 * time.Second):
		d.t.Error("no waiter was woken")
	}
	cancel()
	<-ended
	got := make(map[licensing.Owner][]string)
	for webhooks, err := range s.AllWebhooks(d.context()) {
		if err != nil {
			d.t.Fatal(err)
		}
		for _, e := range webhooks.Endpoints {
			if _, ours := want[webhooks.Owner]; ours {
				got[webhooks.Owner] = append(got[webhooks.Owner], e.ID)
			}
		}
	}
	d.equal("the endpoints", got, want)
}
