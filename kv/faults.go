package kv

import (
	"context"
	"math/rand/v2"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// fault is what goes wrong with one write: whether etcd applies it, and what
// the caller is told, are two switches.
type fault struct {
	apply applied
	tell  error // nil: the truth
}

type applied int

const (
	appliedNow applied = iota
	appliedNever
	appliedLate  // after the next write has been answered: an old proposal that commits behind our back
	appliedTwice // one copy after the other; the second's answer is told
)

// faultyKV makes writes fail as its script says; reads pass.
type faultyKV struct {
	etcdserverpb.KVClient
	next func() fault                   // called for each write
	note func(*etcdserverpb.TxnRequest) // likewise; may be nil

	mu   sync.Mutex
	late []func()
}

// Txn makes a transaction, unless it meets its fault.
func (f *faultyKV) Txn(ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption) (*etcdserverpb.TxnResponse, error) {
	if !writes(request) {
		return f.KVClient.Txn(ctx, request, opts...)
	}
	if f.note != nil {
		f.note(request)
	}
	fault := f.next()
	f.mu.Lock()
	due := f.late
	f.late = nil
	f.mu.Unlock()
	defer func() {
		for _, run := range due {
			run()
		}
	}()
	switch fault.apply {
	case appliedNever:
		return nil, fault.tell
	case appliedLate:
		request := proto.CloneOf(request) // as it was sent: it may be stamped anew meanwhile
		f.mu.Lock()
		f.late = append(f.late, func() { _, _ = f.KVClient.Txn(context.Background(), request, opts...) })
		f.mu.Unlock()
		return nil, fault.tell
	}
	if fault.apply == appliedTwice {
		if _, err := f.KVClient.Txn(ctx, proto.CloneOf(request), opts...); err != nil {
			return nil, err
		}
	}
	response, err := f.KVClient.Txn(ctx, request, opts...)
	if fault.tell != nil {
		return nil, fault.tell
	}
	return response, err
}

func writes(request *etcdserverpb.TxnRequest) bool {
	for _, op := range request.Success {
		if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil || op.GetRequestTxn() != nil {
			return true
		}
	}
	return false
}

// script plays faults one after the other, and then none.
func script(faults ...fault) func() fault {
	var mu sync.Mutex
	return func() fault {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) == 0 {
			return fault{}
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

// storm makes about every second write fail in one way or another.
func storm(seed uint64) func() fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	lost := []error{rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrNoSpace, context.DeadlineExceeded}
	return func() fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(2) == 0 {
			return fault{}
		}
		return fault{apply: applied(random.IntN(3)), tell: lost[random.IntN(len(lost))]}
	}
}
