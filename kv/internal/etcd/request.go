package etcd

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// The hot path builds its requests as etcd's own messages. etcd's client would convert its operations one by one, and
// copy each compare by reflection (client/v3, Cmp.Clone), which costs more than everything else.

// opGet, opPut and opDelete contain the three messages of an operation, for one allocation.
type opGet struct {
	op    etcdserverpb.RequestOp
	union etcdserverpb.RequestOp_RequestRange
	get   etcdserverpb.RangeRequest
}

type opPut struct {
	op    etcdserverpb.RequestOp
	union etcdserverpb.RequestOp_RequestPut
	put   etcdserverpb.PutRequest
}

type opCompare struct {
	compare  etcdserverpb.Compare
	modified etcdserverpb.Compare_ModRevision
}

// Gets returns operations that read keys.
func Gets(keys [][]byte) []*etcdserverpb.RequestOp {
	return AppendGets(make([]*etcdserverpb.RequestOp, 0, len(keys)), keys, false)
}

// AppendGets appends operations that read keys, with or without their values.
func AppendGets(ops []*etcdserverpb.RequestOp, keys [][]byte, keysOnly bool) []*etcdserverpb.RequestOp {
	memory := make([]opGet, len(keys))
	for i, key := range keys {
		o := &memory[i]
		o.get.Key, o.get.KeysOnly = key, keysOnly
		o.union.RequestRange = &o.get
		o.op.Request = &o.union
		ops = append(ops, &o.op)
	}
	return ops
}

// Put returns an operation that puts a key.
func Put(key, value []byte) *etcdserverpb.RequestOp {
	o := &opPut{}
	o.put.Key, o.put.Value = key, value
	o.union.RequestPut = &o.put
	o.op.Request = &o.union
	return &o.op
}

// Delete returns an operation that removes a key.
func Delete(key []byte) *etcdserverpb.RequestOp {
	return &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestDeleteRange{
		RequestDeleteRange: &etcdserverpb.DeleteRangeRequest{Key: key},
	}}
}

// MaxOps is etcd's default limit on the operations of a transaction. etcd counts by depth (server/etcdserver/api/v3rpc,
// checkTxnRequest): the longest of the compares, the Then and the Else, plus the count of the nested transaction that
// has the most.
const MaxOps = 128

// branchOps is how many operations a nested transaction has at most, if there are more than one transaction may have.
const branchOps = MaxOps / 2

// Branch makes operations fit into a request that has beside compares or reads next to them. etcd counts by depth, so a
// branch of nested transactions may contain thousands.
func Branch(ops []*etcdserverpb.RequestOp, beside int) []*etcdserverpb.RequestOp {
	if len(ops) <= MaxOps {
		return ops
	}
	var children []*etcdserverpb.RequestOp
	for some := range slices.Chunk(ops, max(1, min(branchOps, MaxOps-beside))) {
		children = append(children, &etcdserverpb.RequestOp{Request: &etcdserverpb.RequestOp_RequestTxn{
			RequestTxn: &etcdserverpb.TxnRequest{Success: some},
		}})
	}
	return children
}

// Unchanged returns a compare: the key was last written at a revision; at 0, the key does not exist.
func Unchanged(key []byte, revision int64) *etcdserverpb.Compare {
	o := &opCompare{}
	o.modified.ModRevision = revision
	o.compare.Target, o.compare.Result = etcdserverpb.Compare_MOD, etcdserverpb.Compare_EQUAL
	o.compare.TargetUnion, o.compare.Key = &o.modified, key
	return &o.compare
}

// WrittenKey returns the key that an operation of an item writes.
func WrittenKey(op *etcdserverpb.RequestOp) []byte {
	if put := op.GetRequestPut(); put != nil {
		return put.Key
	}
	return op.GetRequestDeleteRange().GetKey()
}
