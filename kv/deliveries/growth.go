package deliveries

import (
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/layout"
	"licet/licensing"
)

// grown returns how much more the owner of an endpoint stores after a transaction that has landed. The puts and deletes
// of the transaction returned the values before.
func grown(ops []clientv3.Op, responses []*etcdserverpb.ResponseOp) (size licensing.Size) {
	for i, op := range ops {
		if op.IsPut() {
			size = size.Plus(layout.SizeOf(len(op.KeyBytes()), len(op.ValueBytes())))
			if before := responses[i].GetResponsePut().GetPrevKv(); before != nil {
				size = size.Minus(layout.SizeOf(len(before.Key), len(before.Value)))
			}
		}
		for _, before := range responses[i].GetResponseDeleteRange().GetPrevKvs() {
			size = size.Minus(layout.SizeOf(len(before.Key), len(before.Value)))
		}
	}
	return size
}
