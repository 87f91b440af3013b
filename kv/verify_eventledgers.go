package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// readCuts reads which owners gave up events that are not too old, and up to which
// epoch.
func (v *verification) readCuts(ctx context.Context) error {
	v.cuts = make(map[licensing.Owner]epoch)
	for from, more := ledgersPrefix, true; more; {
		err := v.retry(ctx, func(ctx context.Context) error {
			page, err := v.store.kv.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(ledgersPrefix)),
				clientv3.WithLimit(ledgersPage), clientv3.WithRev(v.revision))
			if err != nil {
				return err
			}
			for _, kv := range page.Kvs {
				from = string(kv.Key) + "\x00"
				owner, rest, ok := ownerOf(string(kv.Key[len(ledgersPrefix):]))
				ledger, err := readLedger(kv.Value)
				if ok && rest == "" && err == nil && ledger.swept > v.swept {
					v.cuts[owner] = ledger.swept
				}
			}
			more = page.More && len(page.Kvs) > 0
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// sweptOf is the last epoch of which an owner's events are not kept.
func (v *verification) sweptOf(owner licensing.Owner) epoch { return max(v.swept, v.cuts[owner]) }

// checkEventLedger checks a ledger.
func (v *verification) checkEventLedger(e entry) {
	owner, rest, ok := ownerOf(e.rest)
	if !ok || rest != "" {
		v.report("event_ledger", "s/ledger/"+v.opaque(e.rest), "key", "the key has not the form of an owner's")
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("event_ledger", "s/ledger/"+ownerPath(owner), rule, format, args...)
	}
	ledger, err := readLedger(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	if last := ledger.measured(); last >= v.epoch {
		bad("epoch", "it goes up to epoch %d, and the present one is %d", last, v.epoch)
	}
	v.want(eventOwnerKey(owner), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("owner_missing", "the sweep of old events will not find those of this owner")
		}
	})
}
