package etcd

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestClassify sorts failures as they come over the wire.
func TestClassify(t *testing.T) {
	f := func(err error, want Class) {
		t.Helper()
		if got := Classify(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
	wire := func(code codes.Code, text string) error {
		return clientv3.ContextError(context.Background(), status.Error(code, text))
	}
	f(nil, Succeeded)
	f(wire(codes.Unknown, "etcdserver: too many requests"), Refused) // the code that the server's table lacks
	f(wire(codes.ResourceExhausted, "etcdserver: too many requests"), Refused)
	f(wire(codes.InvalidArgument, "etcdserver: revision of auth store is old"), Refused)
	f(wire(codes.Unauthenticated, "etcdserver: invalid auth token"), Refused)
	f(wire(codes.PermissionDenied, "etcdserver: permission denied"), Refused)
	f(wire(codes.OutOfRange, "etcdserver: mvcc: required revision has been compacted"), Refused)
	f(wire(codes.InvalidArgument, "etcdserver: request is too large"), Rejected)
	f(wire(codes.InvalidArgument, "etcdserver: too many operations in txn request"), Rejected)
	f(wire(codes.InvalidArgument, "etcdserver: duplicate key given in txn request"), Rejected)
	f(wire(codes.ResourceExhausted, "etcdserver: mvcc: database space exceeded"), Unknown)
	f(wire(codes.Unavailable, "etcdserver: request timed out"), Unknown)
	f(wire(codes.Unavailable, "etcdserver: request timed out, possibly due to previous leader failure"), Unknown)
	f(wire(codes.Unavailable, "etcdserver: leader changed"), Unknown)
	f(wire(codes.Unavailable, "etcdserver: server stopped"), Unknown)
	f(wire(codes.Unavailable, "etcdserver: no leader"), Unknown)
	f(wire(codes.Unavailable, "transport is closing"), Unknown)
	f(wire(codes.Canceled, "grpc: the client connection is closing"), Unknown)
	f(wire(codes.DeadlineExceeded, "context deadline exceeded"), Unknown)
	f(wire(codes.DataLoss, "etcdserver: corrupt cluster"), Unknown)
	f(context.Canceled, Unknown)
	f(context.DeadlineExceeded, Unknown)
}
