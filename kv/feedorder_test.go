package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/kv/internal/kvtest"
	"licet/node/service"
	"licet/node/store"
)

// TestFeedOrderWithinARevision pays and refunds orders, each in one transaction with its license: the feed has the
// event of the order first, however it is read.
func TestFeedOrderWithinARevision(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.product()
	var want []string
	for range 3 {
		free := l.order(0)
		want = append(want, "1 order.created "+free.OrderNo, "2 order.paid "+free.OrderNo,
			"1 license.issued "+free.LicenseKey.String())
		paid := l.order(500)
		want = append(want, "1 order.created "+paid.OrderNo)
		paid = l.pay(paid)
		want = append(want, "2 order.paid "+paid.OrderNo, "1 license.issued "+paid.LicenseKey.String())
		if _, err := l.node.RecordRefund(l.ctx(), paid, service.MadeRefund{}); err != nil {
			t.Fatal(err)
		}
		want = append(want, "3 order.refunded "+paid.OrderNo, "2 license.revoked "+paid.LicenseKey.String())
	}
	if err := l.store.CloseEpoch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	of := func(events []store.RecordedEvent) (lines []string) {
		for i, kind := range kindsOf(events) {
			if o := events[i].Order; o != nil {
				lines = append(lines, kind+" "+o.OrderNo)
			} else {
				lines = append(lines, kind+" "+events[i].License.Key.String())
			}
		}
		return lines
	}
	for _, limit := range []int{100, 1, 2, 5} {
		var all []store.RecordedEvent
		for page := (store.FeedPage{Limit: limit}); ; {
			got := kvtest.Must(l.store.ReadEvents(l.ctx(), labOwner, page))(t)
			all = append(all, got.Events...)
			if page.After = got.Next; !got.More {
				break
			}
		}
		if diff := cmp.Diff(want, of(all)); diff != "" {
			t.Fatalf("read %d at a time (-want +got):\n%s", limit, diff)
		}
		for i, e := range all {
			if i > 0 && (!all[i-1].Before(&e) || e.Before(&all[i-1])) {
				t.Errorf("%s is not known to come before %s", want[i-1], want[i])
			}
			rest := kvtest.Must(l.store.ReadEvents(l.ctx(), labOwner,
				store.FeedPage{After: store.FeedPosition(e.ID), Limit: 100}))(t)
			if diff := cmp.Diff(want[i+1:], of(rest.Events)); diff != "" && i+1 < len(want) {
				t.Errorf("after %s (-want +got):\n%s", want[i], diff)
			}
		}
	}
}

// TestBeforeOfManyRecords grants licenses in one transaction: Before orders their events as the feed does.
func TestBeforeOfManyRecords(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.product()
	if _, _, err := l.node.Grant(l.ctx(), labOwner, service.Grant{ProductID: "pro", Quantity: 5}); err != nil {
		t.Fatal(err)
	}
	if err := l.store.CloseEpoch(l.ctx()); err != nil {
		t.Fatal(err)
	}
	all := kvtest.Must(l.store.ReadEvents(l.ctx(), labOwner, store.FeedPage{Limit: 100}))(t).Events
	if len(all) != 5 || all[0].Revision != all[4].Revision {
		t.Fatalf("the feed is %+v", all)
	}
	for i := range all {
		for j := range all {
			if before := all[i].Before(&all[j]); before != (i < j) {
				t.Errorf("event %d is before event %d: %v", i, j, before)
			}
		}
	}
}
