package verify

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
)

// readCuts reads which owners gave up events that are not too old, and up to which
// epoch.
func (v *eventChecks) readCuts(ctx context.Context) error {
	v.cuts = make(map[licensing.Owner]keyspace.Epoch)
	ledgers := v.apart().stream(keyspace.LedgersFamily)
	defer ledgers.close()
	for {
		e, more, err := ledgers.next(ctx)
		if err != nil || !more {
			return err
		}
		owner, rest, ok := keyspace.CutOwner(e.rest)
		ledger, err := layout.DecodeLedger(e.value)
		if ok && rest == "" && err == nil && ledger.TrimmedEpoch > v.trimmedEpoch {
			v.cuts[owner] = ledger.TrimmedEpoch
		}
	}
}

// trimmedEpochOf returns the last epoch of which an owner's events are not kept.
func (v *eventChecks) trimmedEpochOf(owner licensing.Owner) keyspace.Epoch {
	return max(v.trimmedEpoch, v.cuts[owner])
}

// checkEventLedger checks a ledger.
func (v *eventChecks) checkEventLedger(e entry) {
	owner, rest, ok := keyspace.CutOwner(e.rest)
	if !ok || rest != "" {
		v.report("event_ledger", "r/"+Opaque(e.rest), "key", "the key does not name an owner")
		return
	}
	bad := func(rule, format string, args ...any) {
		v.report("event_ledger", "r/"+keyspace.OwnerPath(owner), rule, format, args...)
	}
	ledger, err := layout.DecodeLedger(e.value)
	if err != nil {
		bad("value", "the value can't be read: %v", err)
		return
	}
	if last := ledger.MeasuredEpoch(); last >= v.epoch {
		bad("epoch", "it goes up to epoch %d, and the present one is %d", last, v.epoch)
	}
	v.want(keyspace.OwnerKey(owner), func(kv *mvccpb.KeyValue) {
		if kv == nil {
			bad("owner_missing", "the sweep of old events will not find those of this owner")
		}
	})
}
