package verify

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// readCuts reads which owners gave up events that are not too old, and up to which
// epoch.
func (v *eventChecks) readCuts(ctx context.Context) error {
	v.cuts = make(map[licensing.Owner]layout.Epoch)
	for from, more := layout.LedgersPrefix, true; more; {
		err := v.retry(ctx, func(ctx context.Context) error {
			page, err := v.kv.Get(ctx, from, clientv3.WithRange(clientv3.GetPrefixRangeEnd(layout.LedgersPrefix)),
				clientv3.WithLimit(pageSize), clientv3.WithRev(v.revision))
			if err != nil {
				return err
			}
			for _, kv := range page.Kvs {
				from = etcd.After(kv.Key)
				owner, rest, ok := layout.CutOwner(string(kv.Key[len(layout.LedgersPrefix):]))
				ledger, err := layout.DecodeLedger(kv.Value)
				if ok && rest == "" && err == nil && ledger.TrimmedEpoch > v.trimmedEpoch {
					v.cuts[owner] = ledger.TrimmedEpoch
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

// trimmedEpochOf returns the last epoch of which an owner's events are not kept.
func (v *eventChecks) trimmedEpochOf(owner licensing.Owner) layout.Epoch {
	return max(v.trimmedEpoch, v.cuts[owner])
}

// checkEventLedger checks a ledger.
func (v *eventChecks) checkEventLedger(e entry) {
	owner, rest, ok := layout.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("event_ledger", "r/"+v.names.Opaque(e.rest), "key", "the key is not in the form of an owner's")
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("event_ledger", "r/"+layout.OwnerPath(owner), rule, format, args...)
	}
	ledger, err := layout.DecodeLedger(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	if last := ledger.MeasuredEpoch(); last >= v.epoch {
		bad("epoch", "it goes up to epoch %d, and the present one is %d", last, v.epoch)
	}
	v.want(layout.EventOwnerKey(owner), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("owner_missing", "the sweep of old events will not find those of this owner")
		}
	})
}
