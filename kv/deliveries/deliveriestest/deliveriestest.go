package deliveriestest

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/store/storetest"
)

// PutEndpoints returns a function that stores endpoints of an owner and marks others as deleted, as changes of
// endpoints do.
func PutEndpoints(client *clientv3.Client) storetest.PutEndpoints {
	return func(t *testing.T, owner licensing.Owner, endpoints []licensing.Endpoint, deleted ...string) {
		t.Helper()
		stored := &layout.Webhooks{Webhooks: licensing.Webhooks{Owner: owner, Endpoints: endpoints}}
		ops := []clientv3.Op{clientv3.OpPut(keyspace.WebhooksKey(owner), string(stored.Encode())),
			clientv3.OpPut(keyspace.WebhooksMark, ""), clientv3.OpPut(keyspace.OwnerKey(owner), "")}
		slots := map[licensing.Slot]bool{licensing.SlotOf(owner): true}
		for _, endpoint := range deleted {
			ops = append(ops, clientv3.OpPut(keyspace.DeletedWebhookKey(endpoint), ""))
			if slot, ok := licensing.SlotIn(endpoint); ok {
				slots[slot] = true
			}
		}
		for slot := range slots {
			ops = append(ops, clientv3.OpPut(keyspace.SlotKey(slot), ""))
		}
		if _, err := client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}
