package main

import (
	"io"
	"reflect"
	"slices"
	"testing"
)

func TestPlanIsMadeFromItsSeed(t *testing.T) {
	if !reflect.DeepEqual(newPlan(7, 500, 50), newPlan(7, 500, 50)) {
		t.Error("the same seed plans two days")
	}
	if reflect.DeepEqual(newPlan(7, 500, 50), newPlan(8, 500, 50)) {
		t.Error("two seeds plan the same day")
	}
}

// TestUsualDay has at least 500 buyers pay and 50 refunds made, whatever the seed, if
// nothing is said.
func TestUsualDay(t *testing.T) {
	cfg, err := parseConfig(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(20) {
		p := newPlan(seed, cfg.orders, cfg.refunds)
		paid := p.those(func(o *orderPlan) bool {
			return o.fate == canceledPaid || o.fate == raced || o.licensed() && o.fate != free
		})
		refunded := p.those(func(o *orderPlan) bool { return o.refund != noRefund })
		if len(paid) != 508 || len(refunded) != 50 {
			t.Errorf("seed %d: %d orders are paid, and %d refunded", seed, len(paid), len(refunded))
		}
	}
}

// TestEverythingHappens looks at the smallest day and at the usual one: whatever
// may happen does.
func TestEverythingHappens(t *testing.T) {
	for _, size := range []struct{ orders, refunds int }{{minOrders, 5}, {500, 50}} {
		for seed := range uint64(20) {
			p := newPlan(seed, size.orders, size.refunds)
			seen := map[any]int{}
			for _, o := range p.orders {
				for _, what := range []any{o.fate, o.made, o.care, o.refund, o.product} {
					seen[what]++
				}
				if o.refund != noRefund && (!o.licensed() || o.care != leave) {
					t.Errorf("seed %d: %s is refunded, and %s", seed, o, o.care)
				}
				if (o.made == morning) != slices.Contains([]fate{late, lateAtOnce, ranOut}, o.fate) {
					t.Errorf("seed %d: %s is made in shift %d", seed, o, o.made)
				}
				if (o.fate == free) != (o.amount == 0) || o.paid < o.made {
					t.Errorf("seed %d: %s costs %d, made in shift %d, paid in %d", seed, o, o.amount, o.made, o.paid)
				}
			}
			want := []any{
				paidOnce, paidTwice, paidAtOnce, free, late, lateAtOnce, ranOut, canceled, canceledPage, canceledPaid,
				raced, leftUnpaid,
				leave, suspend, reinstate, revoke, renew, extend, end, limits, annotate, overfill, widen, move,
				refundOnce, refundRepeated, refundReplayed, refundAtOnce, refundRaced,
				morning, forenoon, afternoon, editor, studio, cloud,
			}
			for _, what := range want {
				if seen[what] == 0 {
					t.Errorf("seed %d, %d orders: there is no %v", seed, size.orders, what)
				}
			}
			if refunds := len(p.orders) - seen[noRefund]; len(p.orders) != size.orders || refunds != size.refunds {
				t.Errorf("seed %d: %d orders and %d refunds", seed, len(p.orders), refunds)
			}
		}
	}
}
