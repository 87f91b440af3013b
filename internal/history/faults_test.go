package history

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"licet/licensing"
	"licet/node/store"
	"licet/node/store/storetest"
)

// weather says how often something goes wrong, of a thousand requests.
type weather struct {
	before  int // a write fails and is not made
	after   int // a write is made and its answer is lost
	late    int // a write fails and is made some time later
	twice   int // a write is sent twice, and the second answer given
	refused int // a write is refused
	read    int // a read fails
	slow    int // a request takes long
	seen    int // a write of nothing but when devices were seen takes long
	store   int // the store fails: says so, or says that the outcome is unknown
}

func weathers() []weather {
	return []weather{
		{slow: 30, seen: 700},
		{before: 20, after: 30, late: 30, twice: 20, refused: 10, read: 10, slow: 100, seen: 700, store: 5},
		{before: 60, after: 120, late: 100, twice: 60, refused: 30, read: 40, slow: 200, seen: 700, store: 20},
	}
}

// faults lies in wait between one node and etcd, and, for a few, between the
// node and its store.
type faults struct {
	run *run
	on  atomic.Bool

	mu      sync.Mutex
	random  *rand.Rand
	resumed chan struct{} // not nil while the node is paused
}

func newFaults(r *run, process int) *faults {
	return &faults{run: r, random: r.random("faults", uint64(process))}
}

// IntN returns a random number below n.
func (f *faults) IntN(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.random.IntN(n)
}

// hits rolls the dice, for a chance in a thousand.
func (f *faults) hits(chance int) bool { return f.on.Load() && f.IntN(1000) < chance }

// pause stops the node for a while as SIGSTOP does: nothing leaves it, no
// answer reaches it.
func (f *faults) pause(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resumed != nil {
		return
	}
	resumed := make(chan struct{})
	f.resumed = resumed
	time.AfterFunc(d, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.resumed = nil
		close(resumed)
	})
}

// running waits until the node is not paused. An error means that its caller
// has gone.
func (f *faults) running(ctx context.Context) error {
	f.mu.Lock()
	resumed := f.resumed
	f.mu.Unlock()
	if resumed == nil {
		return nil
	}
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}

// sleep takes up to d.
func (f *faults) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(time.Duration(1 + f.IntN(int(d))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// intercept is in the way of every request of the node, in etcd's own server.
func (f *faults) intercept(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (any, error) {
	if err := f.running(ctx); err != nil {
		return nil, err
	}
	var response any
	var err error
	if txn, ok := request.(*pb.TxnRequest); ok && writes(txn) {
		response, err = f.write(ctx, txn, handler)
	} else {
		response, err = f.read(ctx, request, handler)
	}
	if err := f.running(ctx); err != nil {
		return nil, err
	}
	return response, err
}

func writes(txn *pb.TxnRequest) bool {
	for _, op := range txn.Success {
		if op.GetRequestPut() != nil || op.GetRequestDeleteRange() != nil {
			return true
		}
	}
	return false
}

// touches reports whether a transaction writes devices and no license.
func touches(txn *pb.TxnRequest) bool {
	return !slices.ContainsFunc(txn.Success, func(op *pb.RequestOp) bool {
		return !isOf("d/", op.GetRequestPut().GetKey())
	})
}

func (f *faults) read(ctx context.Context, request any, handler grpc.UnaryHandler) (any, error) {
	w := f.run.weather
	if f.hits(w.slow) {
		f.sleep(ctx, 5*time.Millisecond)
	}
	if f.hits(w.read) {
		return nil, f.lost()
	}
	return handler(ctx, request)
}

func (f *faults) write(ctx context.Context, txn *pb.TxnRequest, handler grpc.UnaryHandler) (any, error) {
	w := f.run.weather
	execute := func(ctx context.Context) (any, error) {
		if f.run.bug.txn != nil {
			return f.run.bug.txn(ctx, txn, handler)
		}
		return handler(ctx, txn)
	}
	if f.hits(w.slow) {
		f.sleep(ctx, 5*time.Millisecond)
	}
	if touches(txn) && f.hits(w.seen) {
		f.sleep(ctx, 15*time.Millisecond)
	}
	switch {
	case f.hits(w.refused):
		return nil, rpctypes.ErrGRPCRequestTooManyRequests
	case f.hits(w.before):
		return nil, f.lost()
	case f.hits(w.after):
		_, _ = execute(ctx)
		return nil, f.lost()
	case f.hits(w.late):
		txn = proto.CloneOf(txn)
		later := context.WithoutCancel(ctx)
		f.run.late.Go(func() {
			f.sleep(later, 30*time.Millisecond)
			_, _ = execute(later)
		})
		return nil, f.lost()
	case f.hits(w.twice):
		_, _ = execute(ctx)
	}
	return execute(ctx)
}

// lost returns an error that leaves the outcome open. DeadlineExceeded is not among these errors: etcd does not return
// it while its client still waits, and if etcd did, the client would silently send the call again.
func (f *faults) lost() error {
	if f.run.bug.lost != nil {
		return f.run.bug.lost
	}
	switch f.IntN(5) {
	case 0:
		return rpctypes.ErrGRPCTimeout
	case 1:
		return rpctypes.ErrGRPCLeaderChanged
	case 2:
		return rpctypes.ErrGRPCStopped
	case 3:
		return rpctypes.ErrGRPCNoSpace
	default:
		return status.Error(codes.Unavailable, "transport is closing")
	}
}

// load is the fault of a store's read.
func (f *faults) load([]store.Want) error { return f.unreachable() }

// confirm is the fault of a store's look at a revision.
func (f *faults) confirm(licensing.Ref) error { return f.unreachable() }

func (f *faults) unreachable() error {
	if f.hits(f.run.weather.store) {
		return licensing.ErrUnavailable
	}
	return nil
}

// commit is the fault of a store's write.
func (f *faults) commit(store.Change) storetest.Fault {
	if !f.hits(f.run.weather.store) {
		return storetest.Fault{}
	}
	switch f.IntN(3) {
	case 0:
		return storetest.Fault{Skip: true, Say: licensing.ErrUnavailable}
	case 1:
		return storetest.Fault{Skip: true, Say: licensing.ErrOutcomeUnknown}
	default:
		return storetest.Fault{Say: licensing.ErrOutcomeUnknown}
	}
}
