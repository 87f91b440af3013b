package kv

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store"
)

// putWebhooks writes an owner's endpoints. If the owner begins or ceases to listen to activations, it also writes the
// request for that; see listenmove.go. Commit returns once the request is in effect.
func (sw *swap) putWebhooks(key []byte, write *store.Write, token *stored, writers []layout.Writer) error {
	now, before := write.Record.Webhooks, token.webhooks
	record := layout.Webhooks{Webhooks: *now, Writers: writers, LastEvent: token.lastEvent}
	var were *licensing.Webhooks
	if before != nil {
		were = &before.Webhooks
		record.Unknown, record.UnknownOf = before.Unknown, before.UnknownOf
	}
	value := record.Encode()
	if events := write.Record.Events; len(events) > 0 {
		sw.writeEvents(value, layout.EncodeEvents(events, token.lastEvent), now.Owner,
			keyspace.WebhooksInEvents(now.Owner), now.Sequence)
	}
	sw.putRecord(key, value, token)
	sw.put([]byte(keyspace.WebhooksMark), nil)
	if were != nil {
		for i := range were.Endpoints {
			if id := were.Endpoints[i].ID; now.Find(id) == nil {
				sw.put([]byte(keyspace.DeletedWebhookKey(id)), nil)
			}
		}
	}
	own := licensing.SlotOf(now.Owner)
	for i := range now.Endpoints {
		if id := now.Endpoints[i].ID; were.Find(id) == nil && !own.In(id) {
			return errOtherSlot
		}
	}
	for master := range newMasters(were, now) {
		sw.compares = append(sw.compares, exists([]byte(keyspace.MasterKeyKey(master))))
	}
	// A request that changes nothing is harmless, and mends what may have gone wrong.
	if listens := now.Listening(); listens != were.Listening() || listens != sw.listens(now.Owner) {
		sw.pend(now.Owner, listens)
	}
	return nil
}

// newMasters returns the master keys from which secrets are derived now and were not before. Each must be in use when
// the transaction lands, since it may have been retired meanwhile.
func newMasters(before, now *licensing.Webhooks) map[string]struct{} {
	masters := make(map[string]struct{})
	for i := range now.Endpoints {
		e := &now.Endpoints[i]
		if was := before.Find(e.ID); was == nil || was.MasterID != e.MasterID {
			masters[e.MasterID] = struct{}{}
		}
	}
	return masters
}

// exists demands that a key exists.
func exists(key []byte) *etcdserverpb.Compare {
	return &etcdserverpb.Compare{
		Result: etcdserverpb.Compare_GREATER, Target: etcdserverpb.Compare_CREATE, Key: key,
		TargetUnion: &etcdserverpb.Compare_CreateRevision{CreateRevision: 0},
	}
}
