package verify

import (
	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// checkSandbox checks what the sandbox knows about an order: the order must have begun the attempt.
func (v *recordChecks) checkSandbox(e entry) {
	ref, bad, ok := v.named(e, "sandbox", keyspace.SandboxFamily, keyspace.ReadSandboxKey)
	if !ok {
		return
	}
	stored, err := layout.DecodeSandbox(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	checkWriters(e.value, layout.SandboxWriter, bad)
	s := &stored.Sandbox
	paid := s.Outcome == licensing.SandboxPaid || s.Outcome == licensing.SandboxLate
	if paid == s.PaidAt.IsZero() {
		bad("paid_at", "its checkout is paid and has no time of payment, or has a time and is not paid")
	}
	if (s.RefundNo == "") != s.RefundEnds.IsZero() {
		bad("refund", "its refund that fails has no number or no end")
	}
	if !s.Subscription.Plausible() {
		bad("subscription", "no play leaves its subscription so")
	}
	v.want(keyspace.OrderKey(ref.Owner, ref.ID), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("order_missing", "its order does not exist")
			return
		}
		order, err := layout.DecodeOrder(licensing.OrderRef(ref.Owner, ref.ID), kv.Value)
		if err == nil && order.Order.Attempt < s.Attempt {
			bad("attempt", "its order has begun %d attempts to pay, and attempt %d was played", order.Order.Attempt,
				s.Attempt)
		}
	})
}
