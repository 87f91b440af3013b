package kv

import (
	"context"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
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
		sw.requestListening(now.Owner, listens)
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

// putReceiptKeys writes an owner's receipt keys. The master key that seals the root secret must be in use when the
// transaction lands, since it may have been retired meanwhile.
func (sw *swap) putReceiptKeys(
	key []byte, keys *licensing.ReceiptKeys, token *stored, writers []layout.Writer,
) {
	record := layout.ReceiptKeys{ReceiptKeys: *keys, Writers: writers, Unknown: token.unknown}
	sw.putRecord(key, record.Encode(), token)
	sw.put([]byte(keyspace.ReceiptKeysMark), nil)
	if keys.Root.MasterID != token.sealedUnder {
		sw.compares = append(sw.compares, exists([]byte(keyspace.MasterKeyKey(keys.Root.MasterID))))
	}
}

// RootsSealedElsewhere returns the owners whose root secret for receipts is not sealed under a master key. It reads no
// receipt keys if no other master key is in use.
func (s *apiKeys) RootsSealedElsewhere(ctx context.Context, masterID string) ([]licensing.Owner, error) {
	response, err := s.etcd.Txn(ctx, "scan_masters", nil, []clientv3.Op{
		clientv3.OpGet(keyspace.MastersPrefix, clientv3.WithPrefix(), clientv3.WithKeysOnly()),
	}, nil)
	if err != nil {
		return nil, etcd.Unavailable(err)
	}
	others := false
	for _, kv := range response.Responses[0].GetResponseRange().Kvs {
		others = others || string(kv.Key) != keyspace.MasterKeyKey(masterID)
	}
	if !others {
		return nil, nil
	}
	var owners []licensing.Owner
	err = s.etcd.EachInSlots(ctx, "scan_masters", etcd.Family(keyspace.ReceiptKeysFamily), masterPage,
		response.Header.Revision, func(kv *mvccpb.KeyValue) {
			owner, ok := keyspace.OwnerIn(kv.Key, keyspace.ReceiptKeysFamily)
			if !ok {
				return
			}
			stored, err := layout.DecodeReceiptKeys(owner, kv.Value)
			if err == nil && stored.ReceiptKeys.Root.MasterID != masterID {
				owners = append(owners, owner)
			}
		})
	return owners, err
}

// putTrial writes a trial and the license that it issues, or removes a trial.
func (sw *swap) putTrial(key []byte, write *store.Write, token *stored, writers []layout.Writer) error {
	if removes(write) {
		sw.remove(key, token.size)
		sw.growth.Trials--
		return nil
	}
	trial := layout.Trial{Trial: *write.Record.Trial, Writers: writers}
	sw.putRecord(key, trial.Encode(), token)
	if token.revision == 0 {
		sw.growth.Trials++
	}
	for _, issued := range write.Record.Issued { // its device has events only if the owner listens
		sw.assumed = append(sw.assumed, layout.Listening{Owner: write.Ref.Owner, Listens: token.listens})
		sw.putMetadata(issued, write.Record.Metadata, &stored{})
	}
	return sw.putIssued(&write.Record, writers)
}

// removeLicense removes a license without an order and with its devices in its record, and all that leads to it.
func (sw *swap) removeLicense(key []byte, record *licensing.Record, token *stored) {
	l := record.License
	id := l.Key.ID()
	sw.compare(key, token.revision)
	sw.remove(key, token.size)
	if token.metadata > 0 {
		sw.remove([]byte(keyspace.MetadataKey(id)), token.metadata)
	}
	for i := range l.Reissues.Count() {
		name := licensing.NewLicenseID(id.Slot(), [licensing.LicenseBlockSize]byte([]byte(l.Reissues.Block(i))))
		alias := layout.EncodeAlias(licensing.Alias{License: id, Owner: l.Owner})
		sw.remove([]byte(keyspace.AliasKey(licensing.AliasName(name))), len(alias))
	}
	for _, listed := range keyspace.CustomerKeys(l, token.customer) {
		sw.relist(listed, "")
	}
	sw.relist(keyspace.ListingKey(l.Owner, l.CreatedAt, id), "")
	sw.reschedule(string(key), token.due, 0)
	last := layout.License{License: *l} // only the place of the location is used
	sw.writeLicenseEvents(last.Encode(), record.Events, token.lastEvent)
	sw.gone = append(sw.gone, id)
}

// noteTrial completes the snapshot of a trial: a trial that does not exist has a token too, which says whether the
// owner listens.
func (s *Store) noteTrial(owner licensing.Owner, snapshot *store.Snapshot) {
	token, exists := snapshot.Token.(*stored)
	if !exists {
		token = &stored{}
		snapshot.Token = token
	}
	token.listens = s.fences.listens(owner)
	snapshot.Record.Listening = s.recordActivations || token.listens
}
