package etcd

import (
	"context"

	"google.golang.org/grpc"
)

// Every call of a store's client passes refuseCall or refuseStream: reads, transactions, leases,
// watches, and calls that later code adds. So a store asks nothing of etcd while all members that
// it could ask are barred, and no caller need remember to check that.

// interceptors returns the options of a client whose calls fail while no member may be asked.
func (m *members) interceptors() []grpc.DialOption {
	return []grpc.DialOption{grpc.WithChainUnaryInterceptor(m.refuseCall),
		grpc.WithChainStreamInterceptor(m.refuseStream)}
}

// probing marks the context of probes, which also ask members that are barred.
type probing struct{}

// refusalOf returns why a call must not be made, or nil.
func (m *members) refusalOf(ctx context.Context) error {
	why := m.refusal()
	if why != nil && ctx.Value(probing{}) != nil {
		return nil
	}
	return why
}

func (m *members) refuseCall(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker,
	opts ...grpc.CallOption,
) error {
	if why := m.refusalOf(ctx); why != nil {
		return why
	}
	return call(ctx, method, request, reply, conn, opts...)
}

func (m *members) refuseStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	if why := m.refusalOf(ctx); why != nil {
		return nil, why
	}
	ctx, end := context.WithCancel(ctx)
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		end()
		return nil, err
	}
	return &refusingStream{stream, m, end}, nil
}

// refusingStream is a stream that ends when its user sends a message while no member may be asked.
// Such messages are the keep-alives of leases.
type refusingStream struct {
	grpc.ClientStream
	members *members
	end     context.CancelFunc
}

// SendMsg is part of grpc.ClientStream.
func (s *refusingStream) SendMsg(message any) error {
	if why := s.members.refusalOf(s.Context()); why != nil {
		s.end() // etcd's client makes another stream only where it can't receive any more
		return why
	}
	return s.ClientStream.SendMsg(message)
}

// RecvMsg is part of grpc.ClientStream.
func (s *refusingStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err != nil {
		s.end()
	}
	return err
}
