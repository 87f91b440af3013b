package kv

import (
	"context"
	"math/rand/v2"
	"sync"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
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
	appliedLate // after the next write has been answered: an old proposal that commits behind our back
)

// faultyKV makes writes fail as its script says; reads pass.
type faultyKV struct {
	clientv3.KV
	next func() fault             // called for each write
	note func(then []clientv3.Op) // likewise; may be nil

	mu   sync.Mutex
	late []func()
}

// Txn gives a transaction that meets its fault when it is committed.
func (f *faultyKV) Txn(ctx context.Context) clientv3.Txn {
	return &faultyTxn{Txn: f.KV.Txn(ctx), kv: f}
}

type faultyTxn struct {
	clientv3.Txn
	kv        *faultyKV
	compares  []clientv3.Cmp
	then      []clientv3.Op
	otherwise []clientv3.Op
}

func (t *faultyTxn) If(compares ...clientv3.Cmp) clientv3.Txn {
	t.compares = compares
	return t
}

func (t *faultyTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.then = ops
	return t
}

func (t *faultyTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.otherwise = ops
	return t
}

func (t *faultyTxn) writes() bool {
	for _, op := range t.then {
		if op.IsPut() || op.IsDelete() || op.IsTxn() {
			return true
		}
	}
	return false
}

func (t *faultyTxn) real() (*clientv3.TxnResponse, error) {
	return t.Txn.If(t.compares...).Then(t.then...).Else(t.otherwise...).Commit()
}

func (t *faultyTxn) Commit() (*clientv3.TxnResponse, error) {
	if !t.writes() {
		return t.real()
	}
	if t.kv.note != nil {
		t.kv.note(t.then)
	}
	response, err := t.faulty(t.kv.next())
	return response, err
}

func (t *faultyTxn) faulty(f fault) (*clientv3.TxnResponse, error) {
	t.kv.mu.Lock()
	due := t.kv.late
	t.kv.late = nil
	t.kv.mu.Unlock()
	defer func() {
		for _, run := range due {
			run()
		}
	}()
	switch f.apply {
	case appliedNever:
		return nil, f.tell
	case appliedLate:
		copied := t.kv.KV.Txn(context.Background()).If(t.compares...).Then(t.then...).Else(t.otherwise...)
		t.kv.mu.Lock()
		t.kv.late = append(t.kv.late, func() { _, _ = copied.Commit() })
		t.kv.mu.Unlock()
		return nil, f.tell
	}
	response, err := t.real()
	if f.tell != nil {
		return nil, f.tell
	}
	return response, err
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
