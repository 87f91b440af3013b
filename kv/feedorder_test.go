package kv

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"licet/node"
)

// TestFeedOrderWithinARevision makes orders that are paid and refunded, each in one
// transaction with its license: the feed tells of the order first, however it is read.
func TestFeedOrderWithinARevision(t *testing.T) {
	l := newLab(t)
	l.product()
	var want []string
	for range 3 {
		free := l.order(0)
		want = append(want, "1 order.created "+free.OrderNo, "2 order.paid "+free.OrderNo, "1 license.issued "+string(free.LicenseKey))
		paid := l.order(500)
		want = append(want, "1 order.created "+paid.OrderNo)
		paid = l.pay(paid)
		want = append(want, "2 order.paid "+paid.OrderNo, "1 license.issued "+string(paid.LicenseKey))
		if _, err := l.node.RecordRefund(l.ctx(), paid); err != nil {
			t.Fatal(err)
		}
		want = append(want, "3 order.refunded "+paid.OrderNo, "2 license.revoked "+string(paid.LicenseKey))
	}
	if err := l.store.SealEvents(l.ctx(), must(l.store.EventEpoch(l.ctx()))(t)); err != nil {
		t.Fatal(err)
	}
	of := func(events []node.RecordedEvent) (lines []string) {
		for i, kind := range kindsOf(events) {
			if o := events[i].Order; o != nil {
				lines = append(lines, kind+" "+o.OrderNo)
			} else {
				lines = append(lines, kind+" "+string(events[i].License.Key))
			}
		}
		return lines
	}
	for _, limit := range []int{100, 1, 2, 5} {
		var all []node.RecordedEvent
		for page := (node.FeedPage{Limit: limit}); ; {
			got := must(l.store.ReadEvents(l.ctx(), labOwner, page))(t)
			all = append(all, got.Events...)
			if page.After = got.Next; !got.More {
				break
			}
		}
		if diff := cmp.Diff(want, of(all)); diff != "" {
			t.Fatalf("read %d at a time (-want +got):\n%s", limit, diff)
		}
		for i, e := range all {
			rest := must(l.store.ReadEvents(l.ctx(), labOwner, node.FeedPage{After: node.FeedPosition(e.ID), Limit: 100}))(t)
			if diff := cmp.Diff(want[i+1:], of(rest.Events)); diff != "" && i+1 < len(want) {
				t.Errorf("after %s (-want +got):\n%s", want[i], diff)
			}
		}
	}
}
