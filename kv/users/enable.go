package users

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"licet/kv/internal/keyspace"
)

// enable turns authentication on. A member with --trusted-ca-file but without --client-cert-auth demands certificates
// and ignores their users, and no client can see that. Such a member would refuse every client. So enable gives the
// user Maintenance a password of this call alone, reads from each member as this user, and if a read fails turns
// authentication off with the password.
func (s *securer) enable(ctx context.Context) error {
	if err := s.readAll(ctx); err != nil {
		return fmt.Errorf("authentication stays off: %w", err)
	}
	password := rand.Text()
	if err := s.replaceMaintenance(ctx, password); err != nil {
		return err
	}
	_, err := call(ctx, s.client.AuthEnable)
	if err == nil {
		err = s.readAll(ctx)
	}
	if err == nil {
		return s.note(nil, "turn authentication on")
	}
	err = fmt.Errorf("etcd does not serve with authentication on: %w; if the user name is empty, start every member "+
		"with --client-cert-auth", err)
	if undo := s.disable(ctx, password); undo != nil {
		return errors.Join(err, fmt.Errorf("turning authentication off again failed: %w", undo))
	}
	return fmt.Errorf("%w; authentication is off again", err)
}

// replaceMaintenance makes the user Maintenance with the password. An existing user has the password of an earlier run,
// or none. Between the removal and the addition, etcd may execute a request of an earlier run whose answer was lost.
// Then replaceMaintenance repeats both.
func (s *securer) replaceMaintenance(ctx context.Context, password string) (err error) {
	for range 3 {
		_, err = call(ctx, func(ctx context.Context) (*clientv3.AuthUserDeleteResponse, error) {
			return s.client.UserDelete(ctx, Maintenance)
		})
		if err != nil && !errors.Is(err, rpctypes.ErrUserNotFound) {
			return fmt.Errorf("user %s: %w", Maintenance, err)
		}
		if err = s.addUser(ctx, Maintenance, password); !errors.Is(err, rpctypes.ErrUserAlreadyExist) {
			break
		}
	}
	if err != nil {
		return err
	}
	return s.user(ctx, Maintenance, rootRole)
}

// readAll reads a key from each member. It fails if the configuration does not name all members.
func (s *securer) readAll(ctx context.Context) error {
	read := map[uint64]bool{}
	for _, endpoint := range s.endpoints {
		id, err := s.read(ctx, endpoint)
		if err != nil {
			return fmt.Errorf("etcd at %s: %w", endpoint, err)
		}
		read[id] = true
	}
	members, err := call(ctx, func(ctx context.Context) (*clientv3.MemberListResponse, error) {
		return s.client.MemberList(ctx)
	})
	if err != nil {
		return fmt.Errorf("list the members: %w", err)
	}
	for _, m := range members.Members {
		if !read[m.ID] {
			return fmt.Errorf("the member %q of etcd is not among the endpoints: name all %d", m.Name,
				len(members.Members))
		}
	}
	return nil
}

// read reads a key from one member, and returns the id of the member. The read is linearizable: the member has applied
// all earlier changes of authentication.
func (s *securer) read(ctx context.Context, endpoint string) (id uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	conn, err := s.client.Dial(endpoint)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	response, err := pb.NewKVClient(conn).Range(ctx, &pb.RangeRequest{Key: []byte(keyspace.CheckKey), KeysOnly: true})
	if err != nil {
		return 0, err
	}
	return response.Header.MemberId, nil
}

// disable turns authentication off as the user Maintenance, by password. It is a no-op if authentication is off.
func (s *securer) disable(ctx context.Context, password string) error {
	token, err := call(ctx, func(ctx context.Context) (*clientv3.AuthenticateResponse, error) {
		return s.client.Authenticate(ctx, Maintenance, password)
	})
	if errors.Is(err, rpctypes.ErrAuthNotEnabled) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = call(metadata.AppendToOutgoingContext(ctx, rpctypes.TokenFieldNameGRPC, token.Token),
		s.client.AuthDisable)
	return err
}
