package kvtest

import (
	"context"
	"math/rand/v2"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Fault is the failure of one write. Two switches decide whether etcd applies the write, and which answer the caller
// gets.
type Fault struct {
	Apply Applied
	Tell  error // nil: the truth
}

// Applied says whether etcd applies a write, and when.
type Applied int

// The ways in which etcd applies a write.
const (
	AppliedNow Applied = iota
	AppliedNever
	AppliedLate  // after the next write has been answered: an old proposal that commits behind our back
	AppliedTwice // one copy after the other; the caller gets the answer to the second copy
)

// FaultyKV makes writes fail as its script says; reads pass.
type FaultyKV struct {
	etcdserverpb.KVClient
	Next func() Fault                   // called for each write, one call at a time
	Note func(*etcdserverpb.TxnRequest) // called before each write; may be nil

	mu   sync.Mutex
	Late []func()
}

// Txn makes a transaction, unless it meets its fault.
func (f *FaultyKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	if !IsWrite(request) {
		return f.KVClient.Txn(ctx, request, opts...)
	}
	if f.Note != nil {
		f.Note(request)
	}
	fault, due := f.next(request, opts)
	defer func() {
		for _, run := range due {
			run()
		}
	}()
	switch fault.Apply {
	case AppliedNever, AppliedLate:
		return nil, fault.Tell
	}
	if fault.Apply == AppliedTwice {
		if _, err := f.KVClient.Txn(ctx, proto.CloneOf(request), opts...); err != nil {
			return nil, err
		}
	}
	response, err := f.KVClient.Txn(ctx, request, opts...)
	if fault.Tell != nil {
		return nil, fault.Tell
	}
	return response, err
}

// next returns the fault of a write, and the earlier writes that are due after this one. A caller that Next sets free
// may send another write at once: a write that is applied late is due by then.
func (f *FaultyKV) next(request *etcdserverpb.TxnRequest, opts []grpc.CallOption) (fault Fault, due []func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fault, due, f.Late = f.Next(), f.Late, nil
	if fault.Apply == AppliedLate {
		sent := proto.CloneOf(request) // it may be stamped anew meanwhile
		f.Late = append(f.Late, func() { _, _ = f.KVClient.Txn(context.Background(), sent, opts...) })
	}
	return fault, due
}

// IsWrite reports whether a request changes anything.
func IsWrite(request *etcdserverpb.TxnRequest) bool {
	for _, op := range request.Success {
		if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil || op.GetRequestTxn() != nil {
			return true
		}
	}
	return false
}

// Script plays faults one after the other, and then none.
func Script(faults ...Fault) func() Fault {
	var mu sync.Mutex
	return func() Fault {
		mu.Lock()
		defer mu.Unlock()
		if len(faults) == 0 {
			return Fault{}
		}
		f := faults[0]
		faults = faults[1:]
		return f
	}
}

// Storm makes about every second write fail in one way or another.
func Storm(seed uint64) func() Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	lost := []error{rpctypes.ErrTimeout, rpctypes.ErrLeaderChanged, rpctypes.ErrStopped, rpctypes.ErrNoSpace,
		context.DeadlineExceeded}
	return func() Fault {
		mu.Lock()
		defer mu.Unlock()
		if random.IntN(2) == 0 {
			return Fault{}
		}
		return Fault{Apply: Applied(random.IntN(3)), Tell: lost[random.IntN(len(lost))]}
	}
}
