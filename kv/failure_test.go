package kv

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestClassify sorts failures as they come over the wire.
func TestClassify(t *testing.T) {
	f := func(err error, want class) {
		t.Helper()
		if got := classify(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	wire := func(code codes.Code, text string) error {
		return clientv3.ContextError(context.Background(), status.Error(code, text))
	}
	f(nil, succeeded)
	f(wire(codes.Unknown, "etcdserver: too many requests"), refused) // the code that the server's table lacks
	f(wire(codes.ResourceExhausted, "etcdserver: too many requests"), refused)
	f(wire(codes.InvalidArgument, "etcdserver: revision of auth store is old"), refused)
	f(wire(codes.Unauthenticated, "etcdserver: invalid auth token"), refused)
	f(wire(codes.PermissionDenied, "etcdserver: permission denied"), refused)
	f(wire(codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"), refused)
	f(wire(codes.InvalidArgument, "etcdserver: request is too large"), rejected)
	f(wire(codes.InvalidArgument, "etcdserver: too many operations in txn request"), rejected)
	f(wire(codes.InvalidArgument, "etcdserver: duplicate key given in txn request"), rejected)
	f(wire(codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded"), unknown)
	f(wire(codes.Unavailable, "etcdserver: request timed out"), unknown)
	f(wire(codes.Unavailable, "etcdserver: request timed out, possibly due to previous leader failure"), unknown)
	f(wire(codes.Unavailable, "etcdserver: leader changed"), unknown)
	f(wire(codes.Unavailable, "etcdserver: server stopped"), unknown)
	f(wire(codes.Unavailable, "etcdserver: no leader"), unknown)
	f(wire(codes.Unavailable, "transport is closing"), unknown)
	f(wire(codes.Canceled, "grpc: the client connection is closing"), unknown)
	f(wire(codes.DeadlineExceeded, "context deadline exceeded"), unknown)
	f(wire(codes.DataLoss, "etcdserver: corrupt cluster"), unknown)
	f(context.Canceled, unknown)
	f(context.DeadlineExceeded, unknown)
}
