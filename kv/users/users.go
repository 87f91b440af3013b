package users

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/etcd"
)

const (
	// Service is the user of nodes, and of the commands that read and write keys. Its role has the same name.
	Service = "licet"
	// Maintenance is the user of backups and defragmentation. etcd demands a user of this name.
	Maintenance = "root"

	rootRole = "root" // etcd's own; it need not be added
	// everyKey as the start and the end of a range means all keys (server/auth, isOpenEnded).
	everyKey = "\x00"
)

// Config says which etcd to secure. The certificate must be of the user [Maintenance].
type Config = etcd.Config

// callTimeout bounds one request. etcd's own limit is 7 s. etcd hashes a password with bcrypt, which takes seconds on a
// busy machine.
const callTimeout = 10 * time.Second

// Secure creates the users and their roles, and turns authentication on. It returns the changes that it made, none if
// the cluster was secured already. A changed role or user makes etcd refuse the requests under way, unexecuted.
//
// The configuration must name all members. If a member does not take users from certificates, no client could turn
// authentication off again: Secure then turns it off at once, and fails.
func Secure(ctx context.Context, cfg Config) (changes []string, err error) {
	if err := checkIdentity(cfg); err != nil {
		return nil, err
	}
	s := &securer{endpoints: cfg.Endpoints}
	if s.client, err = etcd.Connect(cfg.Endpoints, cfg.TLS); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.client.Close()) }()
	return s.secure(ctx)
}

// secure makes the changes that are missing.
func (s *securer) secure(ctx context.Context) (changes []string, err error) {
	status, err := call(ctx, s.client.AuthStatus)
	if err != nil {
		return nil, fmt.Errorf("ask etcd whether authentication is on: %w", err)
	}
	if err := errors.Join(s.serviceRole(ctx), s.user(ctx, Service, Service)); err != nil {
		return s.changes, err
	}
	if !status.Enabled {
		return s.changes, s.enable(ctx)
	}
	return s.changes, s.user(ctx, Maintenance, rootRole)
}

// checkIdentity returns an error if etcd would not take the configured certificate for the user Maintenance.
func checkIdentity(cfg Config) error {
	for _, endpoint := range cfg.Endpoints {
		if !strings.HasPrefix(endpoint, "https://") {
			return fmt.Errorf("%s is without TLS: etcd takes users from client certificates", endpoint)
		}
	}
	if cfg.TLS.CertFile == "" {
		return errors.New("no client certificate: set --etcd-cert and --etcd-key to the certificate of the user " +
			Maintenance)
	}
	pair, err := tls.LoadX509KeyPair(cfg.TLS.CertFile, cfg.TLS.KeyFile)
	if err != nil {
		return fmt.Errorf("%s: %w", cfg.TLS.CertFile, err)
	}
	if name := pair.Leaf.Subject.CommonName; name != Maintenance {
		return fmt.Errorf("the certificate in %s has the CommonName %q: use the certificate of the user %q",
			cfg.TLS.CertFile, name, Maintenance)
	}
	return nil
}

// securer changes one cluster.
type securer struct {
	endpoints []string
	client    *clientv3.Client
	changes   []string
}

// call bounds one request.
func call[T any](ctx context.Context, request func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return request(ctx)
}

// note records a change that succeeded.
func (s *securer) note(err error, format string, args ...any) error {
	what := fmt.Sprintf(format, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.changes = append(s.changes, what)
	return nil
}

// serviceRole makes the role of the user Service.
func (s *securer) serviceRole(ctx context.Context) error {
	role, err := call(ctx, func(ctx context.Context) (*clientv3.AuthRoleGetResponse, error) {
		return s.client.RoleGet(ctx, Service)
	})
	switch {
	case errors.Is(err, rpctypes.ErrRoleNotFound):
		_, err = call(ctx, func(ctx context.Context) (*clientv3.AuthRoleAddResponse, error) {
			return s.client.RoleAdd(ctx, Service)
		})
		if err := s.note(err, "role %s: add", Service); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("role %s: %w", Service, err)
	default:
		for _, p := range role.Perm {
			if string(p.Key) == everyKey && string(p.RangeEnd) == everyKey &&
				clientv3.PermissionType(p.PermType) == clientv3.PermissionType(clientv3.PermReadWrite) {
				return nil
			}
		}
	}
	_, err = call(ctx, func(ctx context.Context) (*clientv3.AuthRoleGrantPermissionResponse, error) {
		return s.client.RoleGrantPermission(ctx, Service, everyKey, everyKey,
			clientv3.PermissionType(clientv3.PermReadWrite))
	})
	return s.note(err, "role %s: allow to read and write all keys", Service)
}

// user makes a user with one role. No client can authenticate as a new user by password.
func (s *securer) user(ctx context.Context, name, role string) error {
	user, err := call(ctx, func(ctx context.Context) (*clientv3.AuthUserGetResponse, error) {
		return s.client.UserGet(ctx, name)
	})
	switch {
	case errors.Is(err, rpctypes.ErrUserNotFound):
		user = &clientv3.AuthUserGetResponse{}
		if err := s.addUser(ctx, name, ""); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("user %s: %w", name, err)
	}
	granted := false
	for _, other := range user.Roles {
		if other == role {
			granted = true
			continue
		}
		_, err := call(ctx, func(ctx context.Context) (*clientv3.AuthUserRevokeRoleResponse, error) {
			return s.client.UserRevokeRole(ctx, name, other)
		})
		if err := s.note(err, "user %s: revoke the role %s", name, other); err != nil {
			return err
		}
	}
	if granted {
		return nil
	}
	_, err = call(ctx, func(ctx context.Context) (*clientv3.AuthUserGrantRoleResponse, error) {
		return s.client.UserGrantRole(ctx, name, role)
	})
	return s.note(err, "user %s: grant the role %s", name, role)
}

// addUser adds a user without roles. If the password is empty, no client can authenticate as the user by password.
func (s *securer) addUser(ctx context.Context, name, password string) error {
	_, err := call(ctx, func(ctx context.Context) (*clientv3.AuthUserAddResponse, error) {
		return s.client.UserAddWithOptions(ctx, name, password, &clientv3.UserAddOptions{NoPassword: password == ""})
	})
	return s.note(err, "user %s: add", name)
}
