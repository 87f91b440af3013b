package users

import (
	"context"
	"errors"
	"io"
	"path"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/internal/etcdtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/kvtest"
)

// lab is a member of etcd that takes users from certificates.
type lab struct {
	ca       *etcdtest.CA
	endpoint string
	root     Config
}

func newLab(t *testing.T) *lab {
	t.Helper()
	ca := etcdtest.NewCA(t)
	cluster := etcdtest.StartTLS(t, ca.Issue(t, "etcd", 2))
	l := &lab{ca: ca, endpoint: cluster.Endpoints()[0]}
	l.root = l.config(t, Maintenance)
	return l
}

func (l *lab) config(t *testing.T, user string) Config {
	files := l.ca.Issue(t, user, 3)
	return Config{Endpoints: []string{l.endpoint},
		TLS: etcd.TLS{CAFile: files.CA, CertFile: files.Cert, KeyFile: files.Key}}
}

func (l *lab) client(t *testing.T, user string) *clientv3.Client {
	return connect(t, l.config(t, user))
}

func connect(t *testing.T, cfg Config) *clientv3.Client {
	t.Helper()
	client := kvtest.Must(etcd.Connect(cfg.Endpoints, cfg.TLS))(t)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestSecure: nodes read and write keys and do nothing else, and strangers do nothing. A second run changes nothing.
func TestSecure(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	ctx := t.Context()
	if changes := kvtest.Must(Secure(ctx, l.root))(t); len(changes) != 7 ||
		changes[6] != "turn authentication on" {
		t.Errorf("the first run: %q", changes)
	}
	if changes := kvtest.Must(Secure(ctx, l.root))(t); len(changes) != 0 {
		t.Errorf("the second run: %q", changes)
	}
	service, root := l.client(t, Service), l.client(t, Maintenance)
	revision := kvtest.Must(service.Put(ctx, "x", "1"))(t).Header.Revision
	lease := kvtest.Must(service.Grant(ctx, 60))(t).ID
	member := kvtest.Must(service.MemberList(ctx))(t).Members[0].ID
	snapshot := func(c *clientv3.Client) error {
		s, err := c.SnapshotWithVersion(ctx)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, s.Snapshot)
		return errors.Join(err, s.Snapshot.Close())
	}
	nested := clientv3.OpTxn(nil, []clientv3.Op{clientv3.OpPut("y", "1", clientv3.WithLease(lease))}, nil)
	for name, act := range map[string]func(*clientv3.Client) error{
		"read all keys": func(c *clientv3.Client) error {
			_, err := c.Get(ctx, "\x00", clientv3.WithFromKey())
			return err
		},
		"nested transaction under a lease": func(c *clientv3.Client) error {
			_, err := c.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision("x"), "=", revision)).
				Then(nested, clientv3.OpGet("x"), clientv3.OpDelete("z", clientv3.WithPrefix())).Commit()
			return err
		},
		"watch": func(c *clientv3.Client) error {
			watching, stop := context.WithCancel(ctx)
			defer stop()
			created := <-c.Watch(watching, "x", clientv3.WithCreatedNotify())
			return created.Err()
		},
		"renew a lease": func(c *clientv3.Client) error { _, err := c.KeepAliveOnce(ctx, lease); return err },
		"lease's time":  func(c *clientv3.Client) error { _, err := c.TimeToLive(ctx, lease); return err },
		"status":        func(c *clientv3.Client) error { _, err := c.Status(ctx, l.endpoint); return err },
		"alarms":        func(c *clientv3.Client) error { _, err := c.AlarmList(ctx); return err },
	} {
		if err := act(service); err != nil {
			t.Errorf("%s as %s: %v", name, Service, err)
		}
		if err := act(root); err != nil {
			t.Errorf("%s as %s: %v", name, Maintenance, err)
		}
	}
	for name, act := range map[string]func(*clientv3.Client) error{
		"snapshot":   snapshot,
		"defragment": func(c *clientv3.Client) error { _, err := c.Defragment(ctx, l.endpoint); return err },
		"hash":       func(c *clientv3.Client) error { _, err := c.HashKV(ctx, l.endpoint, 0); return err },
		"user":       func(c *clientv3.Client) error { _, err := c.UserAdd(ctx, c.Username, "x"); return err },
		"role": func(c *clientv3.Client) error {
			_, err := c.UserGrantRole(ctx, Service, rootRole)
			return err
		},
		"member": func(c *clientv3.Client) error {
			_, err := c.MemberUpdate(ctx, member, []string{"http://127.0.0.1:1"})
			return err
		},
		"disarm": func(c *clientv3.Client) error {
			_, err := c.AlarmDisarm(ctx, &clientv3.AlarmMember{MemberID: member, Alarm: etcdserverpb.AlarmType_NOSPACE})
			return err
		},
		"compact": func(c *clientv3.Client) error { _, err := c.Compact(ctx, revision); return err },
		"off":     func(c *clientv3.Client) error { _, err := c.AuthDisable(ctx); return err },
	} {
		for _, user := range []string{Service, "stranger"} {
			err := rpctypes.Error(act(l.client(t, user)))
			if !errors.Is(err, rpctypes.ErrPermissionDenied) && !errors.Is(err, rpctypes.ErrUserNotFound) {
				t.Errorf("%s as %s: %v", name, user, err)
			}
		}
	}
	if _, err := l.client(t, "stranger").Get(ctx, "x"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
		t.Errorf("a stranger reads: %v", err)
	}
	if err := snapshot(root); err != nil {
		t.Errorf("snapshot as %s: %v", Maintenance, err)
	}
	if _, err := root.Defragment(ctx, l.endpoint); err != nil {
		t.Errorf("defragment as %s: %v", Maintenance, err)
	}

	// A right too much is revoked.
	kvtest.Must(root.UserGrantRole(ctx, Service, rootRole))(t)
	if changes := kvtest.Must(Secure(ctx, l.root))(t); !slices.Equal(changes,
		[]string{"user licet: revoke the role root"}) {
		t.Errorf("after a wrong grant: %q", changes)
	}
	if err := snapshot(service); !errors.Is(rpctypes.Error(err), rpctypes.ErrPermissionDenied) {
		t.Errorf("snapshot after a wrong grant: %v", err)
	}
}

// TestSecureContinues: a run that ended early is repeated, also if it had made the user root.
func TestSecureContinues(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	client := l.client(t, Maintenance)
	kvtest.Must(client.RoleAdd(t.Context(), Service))(t)
	kvtest.Must(client.UserAdd(t.Context(), Maintenance, "of an earlier run"))(t)
	kvtest.Must(Secure(t.Context(), l.root))(t)
	kvtest.Must(l.client(t, Service).Put(t.Context(), "x", "1"))(t)
	if _, err := client.Authenticate(t.Context(), Maintenance, "of an earlier run"); err == nil {
		t.Error("the password of the earlier run is valid")
	}
}

// secureBetween is Secure by a client that calls after once each change that etcd has made, with the name of the
// request. The caller gets the error of after in place of etcd's answer.
func (l *lab) secureBetween(t *testing.T, after func(change string) error) error {
	t.Helper()
	reads := []string{"Range", "MemberList", "AuthStatus", "RoleGet", "UserGet", "Authenticate"}
	client := kvtest.Must(etcd.Connect(l.root.Endpoints, l.root.TLS, grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn,
			invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			err := invoke(ctx, method, request, reply, conn, options...)
			if name := path.Base(method); err == nil && !slices.Contains(reads, name) {
				return after(name)
			}
			return err
		})))(t)
	defer func() { _ = client.Close() }()
	_, err := (&securer{endpoints: l.root.Endpoints, client: client}).secure(t.Context())
	return err
}

// TestSecureLostAnswers: etcd makes a change and its answer is lost. Secure fails, and a second run makes the rest.
func TestSecureLostAnswers(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	root := l.client(t, Maintenance)
	for lost := 1; ; lost++ {
		changes := 0
		err := l.secureBetween(t, func(string) error {
			if changes++; changes == lost {
				return context.DeadlineExceeded
			}
			return nil
		})
		if changes < lost {
			if err != nil || changes < 7 {
				t.Errorf("after %d changes: %v", changes, err)
			}
			return
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the answer to change %d is lost: %v", lost, err)
		}
		kvtest.Must(Secure(t.Context(), l.root))(t)
		kvtest.Must(l.client(t, Service).Put(t.Context(), "x", "1"))(t)
		if _, err := l.client(t, "stranger").Get(t.Context(), "x"); !errors.Is(err, rpctypes.ErrPermissionDenied) {
			t.Errorf("the answer to change %d was lost, and a stranger reads: %v", lost, err)
		}
		kvtest.Must(root.AuthDisable(t.Context()))(t)
		kvtest.Must(root.UserDelete(t.Context(), Service))(t)
		kvtest.Must(root.UserDelete(t.Context(), Maintenance))(t)
		kvtest.Must(root.RoleDelete(t.Context(), Service))(t)
	}
}

// TestSecureLateRequest: etcd executes the addition of an earlier run late, when this run has removed the user root.
func TestSecureLateRequest(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	root, late := l.client(t, Maintenance), true
	kvtest.Must(root.UserAdd(t.Context(), Maintenance, "of another run"))(t)
	err := l.secureBetween(t, func(change string) error {
		if change == "UserDelete" && late {
			late = false
			kvtest.Must(root.UserAdd(t.Context(), Maintenance, "of an earlier run"))(t)
		}
		return nil
	})
	if err != nil || late {
		t.Errorf("got error %v, the late request is outstanding: %v", err, late)
	}
	kvtest.Must(l.client(t, Service).Put(t.Context(), "x", "1"))(t)
	if _, err := root.Authenticate(t.Context(), Maintenance, "of an earlier run"); err == nil {
		t.Error("the password of the earlier run is valid")
	}
}

// TestSecureRefuses certificates of other users, and connections without.
func TestSecureRefuses(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	f := func(problem string, cfg Config) {
		t.Helper()
		if _, err := Secure(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got error %v, want %q", err, problem)
		}
	}
	f(`has the CommonName "licet": use the certificate of the user "root"`, l.config(t, Service))
	f("no client certificate", Config{Endpoints: l.root.Endpoints, TLS: etcd.TLS{CAFile: l.ca.File}})
	f("http://127.0.0.1:1 is without TLS", Config{Endpoints: []string{"http://127.0.0.1:1"}, TLS: l.root.TLS})
	if status := kvtest.Must(l.client(t, Service).AuthStatus(t.Context()))(t); status.Enabled ||
		status.AuthRevision != 1 {
		t.Errorf("etcd was changed: %v", status)
	}
}

// TestMembersWithoutUsers: if members ignore certificates, authentication would refuse everybody. It is off again.
func TestMembersWithoutUsers(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	client := connect(t, Config{Endpoints: cluster.Endpoints()})
	f := func(problem string, endpoints []string) {
		t.Helper()
		s := &securer{endpoints: endpoints, client: client}
		if err := s.enable(t.Context()); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("got error %v, want %q", err, problem)
		}
		if status := kvtest.Must(client.AuthStatus(t.Context()))(t); status.Enabled {
			t.Fatal("authentication is on")
		}
		kvtest.Must(client.Put(t.Context(), "x", "1"))(t)
	}
	f("is not among the endpoints: name all 3", cluster.Endpoints()[:2])
	f("authentication is off again", cluster.Endpoints())
}
