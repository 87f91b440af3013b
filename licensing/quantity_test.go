package licensing_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"licet/licensing"
	"licet/licensing/keyring"
)

// batchOf is how many licenses the transactions of these tests issue at most.
const batchOf = 3

var keysForTest, _ = keysOfTest()

// manyKeys returns keys of licenses: a stand-in for keys that derive from a seed.
func manyKeys(from, to int) (keys []licensing.LicenseKey) {
	for i := from; i < to; i++ {
		keys = append(keys, mintFor(fmt.Sprintf("many%08d", i)))
	}
	return keys
}

// mintFor returns a key for 12 random bytes.
func mintFor(entropy string) licensing.LicenseKey {
	return keysForTest.Mint("LIC", shop, [keyring.LicenseKeyEntropy]byte([]byte(entropy)))
}

// orderOfMany returns an unpaid order for many licenses.
func orderOfMany(quantity int) licensing.Record {
	return ordered(func(o *licensing.Order) { o.Quantity = quantity })
}

// payMany is the payment of an order for many licenses.
func payMany(quantity int) licensing.PayOrder {
	keys := manyKeys(0, min(quantity, batchOf))
	return licensing.PayOrder{Payment: "pi_1", Terms: licensing.Terms{KeyPrefix: "LIC", MaxDevices: 7},
		Key: keys[0], Seed: licensing.KeySeed{1}, More: keys[1:]}
}

func issueFrom(o *licensing.Order) licensing.IssueLicenses {
	from := o.LicensesIssued
	return licensing.IssueLicenses{From: from, Keys: manyKeys(from, from+batchOf)}
}

// TestPayOrderOfMany pays an order for eight licenses, and issues the others.
func TestPayOrderOfMany(t *testing.T) {
	r := orderOfMany(8)
	result := must(t, &r, payMany(8), noon)
	o := new(result.Order())
	if len(r.Issued) != 3 || o.Issued() != 3 || o.Licenses() != 8 || o.LicenseKey != manyKeys(0, 1)[0] ||
		o.KeySeed != (licensing.KeySeed{1}) || o.Terms.MaxDevices != 7 || !o.Issuing() ||
		o.Due() != (licensing.Due{Kind: licensing.DueIssue}) {
		t.Fatalf("issued %d, and the order is %+v", len(r.Issued), o)
	}
	paid := 0
	for _, e := range r.Events {
		if e.Type == licensing.EventOrderPaid && e.Order.LicensesIssued == 3 {
			paid++
		}
	}
	if paid != 1 || len(r.Events) != 4 {
		t.Errorf("the events are %+v", r.Events)
	}
	var keys []licensing.LicenseKey
	for _, l := range r.Issued {
		keys = append(keys, l.Key)
	}
	for at := noon; o.Issuing(); {
		r = licensing.Record{Order: new(*o)}
		at = at.Add(time.Second)
		o = new(must(t, &r, issueFrom(o), at).Order())
		for _, l := range r.Issued {
			keys = append(keys, l.Key)
			if l.OrderNo != o.OrderNo || l.MaxDevices != 7 || !l.CreatedAt.Equal(at) || l.Sequence != 1 {
				t.Errorf("issued %+v", l)
			}
		}
		if len(r.Events) != len(r.Issued) || r.Events[0].Actor != licensing.System {
			t.Errorf("%d licenses have the events %+v", len(r.Issued), r.Events)
		}
	}
	if diff := cmp.Diff(manyKeys(0, 8), keys); diff != "" || o.Issued() != 8 || o.Due() != (licensing.Due{}) {
		t.Errorf("the keys (-want +got):\n%s\nthe order: %+v", diff, o)
	}
}

// TestIssueLicensesNoOp issues nothing where other licenses exist than the command says, or the issue was stopped.
func TestIssueLicensesNoOp(t *testing.T) {
	paid := func(change func(*licensing.Order)) licensing.Record {
		r := orderOfMany(8)
		must(t, &r, payMany(8), noon)
		change(r.Order)
		return licensing.Record{Order: r.Order}
	}
	next := issueFrom(&licensing.Order{LicensesIssued: 3})
	for name, test := range map[string]struct {
		record  licensing.Record
		command licensing.IssueLicenses
	}{
		"unpaid": {orderOfMany(8), licensing.IssueLicenses{Keys: manyKeys(0, 3)}},
		"canceled": {paid(func(o *licensing.Order) {
			*o = licensing.Order{CanceledAt: noon, Quantity: 8}
		}), next},
		"another first":  {paid(func(o *licensing.Order) { o.LicensesIssued = 6 }), next},
		"too far":        {paid(func(o *licensing.Order) { o.LicensesIssued = 1 }), next},
		"complete":       {paid(func(o *licensing.Order) { o.Quantity = 3 }), next},
		"refund is due":  {paid(func(o *licensing.Order) { o.RefundDue = true }), next},
		"refunded":       {paid(func(o *licensing.Order) { o.RefundedAt = noon }), next},
		"of one license": {paid(func(o *licensing.Order) { o.Quantity, o.LicensesIssued = 0, 0 }), next},
	} {
		before := *test.record.Order
		result := must(t, &test.record, test.command, noon)
		if test.record.Changed || len(test.record.Issued) > 0 || result.Order() != before {
			t.Errorf("%s: issued %d, and the order is %+v", name, len(test.record.Issued), result.Order())
		}
	}
	r := orderOfMany(8)
	must(t, &r, payMany(8), noon)
	must(t, &r, next, noon)
	if len(r.Issued) != 3 || r.Order.LicensesIssued != 3 {
		t.Errorf("one transaction issues %d licenses", len(r.Issued))
	}
}

// TestRefundOfMany: the refund of an order for many stores that the licenses besides the first one must be revoked. A
// refund that is withdrawn lets the issue go on.
func TestRefundOfMany(t *testing.T) {
	r := orderOfMany(8)
	must(t, &r, payMany(8), noon)
	must(t, &r, licensing.RequestRefund{By: byKey, Reason: "late"}, noon)
	if r.Order.Issuing() || r.Order.Due().Kind != licensing.DueRefund {
		t.Errorf("a refund is due, and the order is %+v", r.Order)
	}
	if must(t, &r, licensing.RefundOrder{Partial: true}, noon); !r.Order.RefundedAt.IsZero() {
		t.Errorf("refunded, and its first license was not revoked: %+v", r.Order)
	}
	withdrawn := licensing.Record{Order: new(*r.Order)}
	if must(t, &withdrawn, licensing.WithdrawRefund{}, noon); !withdrawn.Order.Issuing() {
		t.Errorf("the refund was withdrawn, and the issue does not go on: %+v", withdrawn.Order)
	}
	must(t, &r, licensing.RefundOrder{}, noon)
	revoke := licensing.OrderOthers{Others: licensing.OthersRevoke, OthersFrom: 1}
	if r.Order.RefundedAt.IsZero() || r.Order.Issuing() || r.Order.OrderOthers != revoke {
		t.Errorf("not refunded: %+v", r.Order)
	}
	want := licensing.RevokeLicense{
		Target: licensing.Target{Key: otherKey, By: byKey}, Reason: "late",
	}
	if got := licensing.OthersCommand(r.Order, otherKey); got != licensing.Command(want) {
		t.Errorf("the licenses get %+v, want %+v", got, want)
	}
}

// TestIssueAlongRefund: an open refund of a part does not stop the issue, and a sweep finds both. A refund of all that
// is left stops the issue, unless a dispute suspends the licenses.
func TestIssueAlongRefund(t *testing.T) {
	for _, part := range []bool{true, false} {
		r := orderOfMany(8)
		r.Order.Amount = 100
		must(t, &r, payMany(8), noon)
		request := licensing.RequestRefund{By: byKey, Number: "ref_1"}
		if part {
			request.Amount = 99
		}
		must(t, &r, request, noon)
		must(t, &r, licensing.TryRefund{}, noon)
		want := licensing.Due{Kind: licensing.DueRefund, At: r.Order.RefundRetryAt}
		if part {
			want = licensing.Due{Kind: licensing.DueIssue}
		}
		if r.Order.Issuing() != part || r.Order.Due() != want {
			t.Errorf("part %t: issuing %t, due %+v", part, r.Order.Issuing(), r.Order.Due())
		}
		r.Issued = nil // of the payment
		if must(t, &r, issueFrom(r.Order), noon); r.Order.LicensesIssued == 6 != part {
			t.Errorf("part %t: %d licenses", part, r.Order.LicensesIssued)
		}
		for r.Order.LacksLicenses() {
			next := issueFrom(r.Order)
			next.Disputed, r.Issued = true, nil
			must(t, &r, next, noon)
		}
		must(t, &r, licensing.RefundOrder{Number: "ref_1", Partial: part}, noon)
		revokes := r.Order.Others == licensing.OthersRevoke
		if r.Order.RefundDue || r.Order.RefundedAt.IsZero() != part || revokes == part {
			t.Errorf("part %t: %+v", part, r.Order)
		}
	}
}

// TestExactlyQuantity runs payments, issues, refunds and cancellations in any order, each by itself and some with old
// arguments: an order has each of its licenses once, in the order of their keys, and never more than it is for.
func TestExactlyQuantity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		quantity := rapid.IntRange(2, 10).Draw(t, "quantity")
		steps := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "steps")
		stored := *orderOfMany(quantity).Order
		var keys []licensing.LicenseKey
		seen := []licensing.Order{stored}
		for i, step := range steps {
			old := &seen[(int(step)>>3+i)%len(seen)]
			var c licensing.Command
			switch step % 8 {
			case 0:
				c = payMany(quantity)
			case 1, 2, 3:
				c = issueFrom(&stored)
			case 4:
				next := issueFrom(old)
				next.Disputed = step>>3%2 > 0
				c = next
			case 5:
				c = licensing.RequestRefund{}
			case 6:
				c = licensing.WithdrawRefund{Tries: old.RefundTries}
			default:
				c = licensing.RefundOrder{}
			}
			r := licensing.Record{Order: new(stored)}
			if _, err := licensing.Apply(&r, c, noon); err == nil && r.Changed {
				stored = *r.Order
				seen = append(seen, stored)
				for _, l := range r.Issued {
					keys = append(keys, l.Key)
				}
			}
			if others := stored.OrderOthers; !stored.RefundedAt.IsZero() && stored.Issued() > 1 &&
				others != (licensing.OrderOthers{Others: licensing.OthersRevoke, OthersFrom: 1}) {
				t.Fatalf("refunded with %d licenses, which get %+v", stored.Issued(), others)
			}
			if stored.Issued() != len(keys) || !slices.Equal(keys, manyKeys(0, min(len(keys), quantity))) {
				t.Fatalf("the order for %d has %d licenses, with the keys %v", quantity, stored.Issued(), keys)
			}
		}
		for stored.Issuing() {
			r := licensing.Record{Order: new(stored)}
			must(t, &r, issueFrom(&stored), noon)
			stored = *r.Order
		}
		if !stored.PaidAt.IsZero() && !stored.RefundDue && stored.RefundedAt.IsZero() && stored.Issued() != quantity {
			t.Fatalf("in the end, the order for %d has %d licenses", quantity, stored.Issued())
		}
	})
}

// TestKeySeed derives the same keys as a grant with the seed, and others for each index and seed.
func TestKeySeed(t *testing.T) {
	seed := licensing.KeySeed{1, 2}
	grant := licensing.GrantProgress{Seed: seed, Terms: licensing.Terms{KeyPrefix: "LIC"}}
	o := ordered(nil).Order
	o.Quantity, o.KeySeed, o.Terms.KeyPrefix = 9, seed, "LIC"
	o.LicenseKey = keysForTest.SeededKey(seed, "LIC", o.Owner, 0)
	seen := map[licensing.LicenseKey]bool{}
	for i := range 9 {
		key := keysForTest.OrderKey(o, i)
		if seen[key] || key != keysForTest.GrantKey(&grant, o.Owner, i) ||
			key == keysForTest.SeededKey(licensing.KeySeed{1}, "LIC", o.Owner, i) {
			t.Errorf("key %d is %v", i, key)
		}
		seen[key] = true
	}
}

// TestChangeOthers: the other licenses of an order get each decision once, in order, unless a later decision replaces
// it. A sweep finds the order until then.
func TestChangeOthers(t *testing.T) {
	r := orderOfMany(5)
	r.Order.Amount = 40
	must(t, &r, payMany(3), noon)
	for r.Order.Issuing() {
		r.Issued = nil
		must(t, &r, issueFrom(r.Order), noon)
	}
	suspend := func(from uint16) licensing.OrderOthers {
		return licensing.OrderOthers{Others: licensing.OthersSuspend, OthersFrom: from}
	}
	reinstate := licensing.OrderOthers{Others: licensing.OthersReinstate, OthersFrom: 1}
	disputed := func(recorded *licensing.Payment, state licensing.PaymentState, want licensing.OrderOthers) {
		t.Helper()
		must(t, &r, licensing.NoteDispute{Suspend: true, Recorded: recorded,
			Dispute: licensing.Payment{Reference: "du_1", Amount: 40, State: state}}, noon)
		if r.Order.OrderOthers != want {
			t.Errorf("a dispute is %s, and the other licenses must get %+v, want %+v", state, r.Order.OrderOthers, want)
		}
	}
	change := func(now licensing.OrderOthers, to int, want bool, left licensing.OrderOthers) {
		t.Helper()
		before := *r.Order
		result := must(t, &r, licensing.ChangeOthers{Now: now, To: to}, noon)
		if result.Created != want || r.Order.OrderOthers != left || !want && *r.Order != before {
			t.Errorf("%+v up to %d: %t, then %+v", now, to, result.Created, r.Order)
		}
		if due := r.Order.Due().Kind == licensing.DueIssue; due != (left != licensing.OrderOthers{}) {
			t.Errorf("%+v is left, and a sweep finds the order: %t", left, due)
		}
	}
	none, open := licensing.OrderOthers{}, &licensing.Payment{State: licensing.PaymentOpen}
	change(suspend(1), 3, false, none)
	disputed(nil, licensing.PaymentOpen, suspend(1))
	change(suspend(1), 3, true, suspend(3))
	change(suspend(1), 3, false, suspend(3))
	disputed(open, licensing.PaymentOpen, suspend(3))
	disputed(open, licensing.PaymentWon, reinstate)
	change(suspend(3), 5, false, reinstate)
	change(reinstate, 5, true, none)
	change(reinstate, 5, false, none)
	revoke := licensing.OrderOthers{Others: licensing.OthersRevoke, OthersFrom: 1}
	disputed(&licensing.Payment{Amount: 40, State: licensing.PaymentWon}, licensing.PaymentLost, revoke)
	disputed(nil, licensing.PaymentOpen, revoke) // the order stays refunded
	change(revoke, 5, true, none)
	disputed(nil, licensing.PaymentOpen, none)
}
