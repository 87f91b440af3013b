package etcd

import (
	"slices"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Requests of the hot path are built as etcd's own messages. The operations of
// etcd's client are turned into them one by one, and each compare is copied by
// reflection (client/v3, Cmp.Clone), which costs more than all the rest.

// opGet, opPut and opDelete hold the three messages of an operation together.
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

// Gets reads keys.
func Gets(keys [][]byte) []*etcdserverpb.RequestOp {
	return AppendGets(make([]*etcdserverpb.RequestOp, 0, len(keys)), keys, false)
}

// AppendGets reads keys with their values or without.
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

// MaxOps is etcd's default limit on the operations of a transaction. It
// counts by depth (server/etcdserver/api/v3rpc, checkTxnRequest): of the
// compares, the Then and the Else, whichever is longest, and below it the
// same of the child that has most.
const MaxOps = 128

// branchOps is how many operations go into a transaction of their own at the
// most, where there are more than one may have.
const branchOps = MaxOps / 2

// Branch makes operations fit into a request that has so many compares or reads
// beside them. etcd counts all by depth, so a branch of transactions may hold
// thousands.
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

// Unchanged demands that a key was last written at a revision; at 0, that it
// does not exist.
func Unchanged(key []byte, revision int64) *etcdserverpb.Compare {
	o := &opCompare{}
	o.modified.ModRevision = revision
	o.compare.Target, o.compare.Result = etcdserverpb.Compare_MOD, etcdserverpb.Compare_EQUAL
	o.compare.TargetUnion, o.compare.Key = &o.modified, key
	return &o.compare
}

// WrittenKey is the key that an operation of a part writes.
func WrittenKey(op *etcdserverpb.RequestOp) []byte {
	if put := op.GetRequestPut(); put != nil {
		return put.Key
	}
	return op.GetRequestDeleteRange().GetKey()
}
