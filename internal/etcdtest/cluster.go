package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"licet/internal/process"
)

// Main runs a member of etcd if the test binary was started as one, and otherwise returns. TestMain
// must call it first.
func Main() { process.BeEtcd() }

// Files names the files of a TLS identity.
type Files struct{ CA, Cert, Key string }

// Cluster is an etcd cluster. Its members serve on unix sockets, which need no
// free ports, or with TLS on a TCP port.
type Cluster struct {
	Members []*Member
	network *network
}

// Member is one process of a cluster. It is used by one goroutine at a time.
type Member struct {
	Endpoint string

	dir   string
	spec  process.Member
	child *process.Child // nil: it does not run
}

const startTimeout = time.Minute

// Start starts a cluster and waits until every member serves. The end of the test stops the cluster.
func Start(t testing.TB, size int) *Cluster {
	t.Helper()
	return StartSmall(t, size, 0)
}

// StartSmall starts a cluster as Start does, whose members have a quota of so many bytes; 0: etcd's default.
func StartSmall(t testing.TB, size int, quota int64) *Cluster {
	t.Helper()
	c := newCluster(t, size)
	for _, m := range c.Members {
		m.spec.Quota = quota
		m.spec.Client = "unix://" + filepath.Join(m.dir, "client.sock")
		m.Endpoint = m.spec.Client
	}
	if err := c.start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// StartTLS starts a cluster of one member that serves on a port of 127.0.0.1 with these files, and
// requires client certificates of the same CA.
func StartTLS(t testing.TB, files Files) *Cluster {
	t.Helper()
	c := newCluster(t, 1)
	m := c.Members[0]
	m.spec.CAFile, m.spec.CertFile, m.spec.KeyFile = files.CA, files.Cert, files.Key
	var err error
	for range 5 { // another process may take the port in between
		m.Endpoint = "https://" + freeAddress(t)
		m.spec.Client = m.Endpoint
		if err = c.start(); err == nil {
			return c
		}
	}
	t.Fatal(err)
	return nil
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func newCluster(t testing.TB, size int) *Cluster {
	t.Helper()
	// Not t.TempDir: a socket's path must be short.
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{}
	var all []string
	for i := range size {
		name := fmt.Sprintf("m%d", i)
		all = append(all, name+"="+peerURL(name))
		at := filepath.Join(dir, name)
		c.Members = append(c.Members,
			&Member{dir: at, spec: process.Member{Name: name, Dir: at, Peer: peerURL(name), NoSync: true}})
	}
	for _, m := range c.Members {
		m.spec.Cluster = strings.Join(all, ",")
	}
	if err = makeDirs(c.Members); err == nil {
		c.network, err = newNetwork(c.Members)
	}
	t.Cleanup(func() {
		for _, m := range c.Members {
			m.Kill()
			if t.Failed() {
				text, err := os.ReadFile(m.dir + ".log")
				t.Logf("etcd member %s wrote:\n%s\n%v", m.spec.Name, text, err)
			}
		}
		c.network.close()
		_ = os.RemoveAll(dir)
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *Cluster) start() error {
	errs := make([]error, len(c.Members))
	var group sync.WaitGroup
	for i, m := range c.Members {
		group.Go(func() { errs[i] = m.start() })
	}
	group.Wait()
	return errors.Join(errs...)
}

// Endpoints returns the endpoints of the members.
func (c *Cluster) Endpoints() []string {
	endpoints := make([]string, len(c.Members))
	for i, m := range c.Members {
		endpoints[i] = m.Endpoint
	}
	return endpoints
}

// Isolate disconnects a member from its peers. Clients still reach it.
func (c *Cluster) Isolate(m *Member) { c.network.isolate(m, true) }

// Join reconnects an isolated member.
func (c *Cluster) Join(m *Member) { c.network.isolate(m, false) }

// Leader waits until a running member leads, and returns the leader and one of its followers.
func (c *Cluster) Leader(t testing.TB) (leader, follower *Member) {
	t.Helper()
	for deadline := time.Now().Add(startTimeout); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		for _, m := range c.Members {
			if m.child == nil {
				continue
			}
			if m.leads() {
				leader = m
			} else {
				follower = m
			}
		}
		if leader != nil {
			return leader, follower
		}
	}
	t.Fatal("no member leads")
	return nil, nil
}

func (m *Member) leads() bool {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{m.Endpoint}, Logger: zap.NewNop()})
	if err != nil {
		return false
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	status, err := client.Status(ctx, m.Endpoint)
	return err == nil && status.Leader == status.Header.MemberId
}

func (m *Member) start() (err error) {
	m.child, err = process.StartEtcd(context.Background(), m.spec, startTimeout)
	return err
}

// Kill sends SIGKILL and waits until the process has ended.
func (m *Member) Kill() {
	if m.child != nil {
		m.child.Kill()
		m.child = nil
	}
}

// Restart starts a member again that was killed, on the data that it had.
func (m *Member) Restart(t testing.TB) {
	t.Helper()
	if err := m.start(); err != nil {
		t.Fatal(err)
	}
}

// Stop stops the process as it stands, with SIGSTOP: its connections stay, and
// nothing is answered.
func (m *Member) Stop(t testing.TB) { m.signal(t, syscall.SIGSTOP) }

// Continue lets a stopped process go on.
func (m *Member) Continue(t testing.TB) { m.signal(t, syscall.SIGCONT) }

func (m *Member) signal(t testing.TB, signal syscall.Signal) {
	t.Helper()
	if err := m.child.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
