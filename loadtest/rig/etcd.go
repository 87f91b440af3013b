package rig

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"licet/internal/process"
)

const startTimeout = time.Minute

// EtcdQuota is the largest database that etcd's authors advise. The default of 2 GiB
// does not suffice for a million licenses with their history.
const EtcdQuota = 8 << 30

// Cluster is an etcd whose members are processes of their own, on loopback.
type Cluster struct {
	Endpoints []string
	Members   []*process.Child
	Admin     *clientv3.Client // for requests besides the load

	specs []process.Member
}

// StartEtcd starts a cluster with empty data directories below dir. It has etcd's own
// defaults, but for the quota and for how much history periodic compaction keeps: every
// write is synced to the disk.
func StartEtcd(ctx context.Context, dir string, size int, retention string) (*Cluster, error) {
	ports, err := FreePorts(2 * size)
	if err != nil {
		return nil, err
	}
	specs := make([]process.Member, size)
	var all []string
	for i := range specs {
		name := fmt.Sprintf("m%d", i)
		specs[i] = process.Member{
			Name: name, Dir: filepath.Join(dir, name), Retention: retention, Quota: EtcdQuota,
			Client: fmt.Sprintf("http://127.0.0.1:%d", ports[2*i]),
			Peer:   fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]),
		}
		all = append(all, name+"="+specs[i].Peer)
		if err := os.Mkdir(specs[i].Dir, 0o700); err != nil {
			return nil, err
		}
	}
	c := &Cluster{specs: specs, Members: make([]*process.Child, size)}
	errs := make([]error, size)
	var group sync.WaitGroup
	for i := range specs { // a member is ready only once it has met the others
		specs[i].Cluster = strings.Join(all, ",")
		c.Endpoints = append(c.Endpoints, specs[i].Client)
		group.Go(func() { c.Members[i], errs[i] = process.StartEtcd(ctx, specs[i], startTimeout) })
	}
	group.Wait()
	err = errors.Join(errs...)
	if err == nil {
		c.Admin, err = NewEtcdClient(c.Endpoints)
	}
	if err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

// StartMember starts a member again that has ended, on the data that it had, and waits
// until it serves.
func (c *Cluster) StartMember(ctx context.Context, i int, limit time.Duration) error {
	member, err := process.StartEtcd(ctx, c.specs[i], limit)
	if err == nil {
		c.Members[i] = member
	}
	return err
}

// askTimeout is how long a member may take to answer a status request.
const askTimeout = 2 * time.Second

// Leader returns the index of the member that leads. Members may be down.
func (c *Cluster) Leader(ctx context.Context) (int, error) {
	var errs []error
	for i, endpoint := range c.Endpoints {
		asked, cancel := context.WithTimeout(ctx, askTimeout)
		status, err := c.Admin.Status(asked, endpoint)
		cancel()
		if err != nil {
			errs = append(errs, err)
		} else if status.Leader == status.Header.MemberId {
			return i, nil
		}
	}
	return 0, fmt.Errorf("etcd has no leader that says so: %w", errors.Join(errs...))
}

// Stop kills all members.
func (c *Cluster) Stop() {
	if c.Admin != nil {
		_ = c.Admin.Close()
	}
	for _, member := range c.Members {
		if member != nil {
			member.Kill()
		}
	}
}

// PIDs returns the process ids of the members.
func (c *Cluster) PIDs() []int {
	var pids []int
	for _, member := range c.Members {
		pids = append(pids, member.PID())
	}
	return pids
}

// NewEtcdClient connects to members of etcd.
func NewEtcdClient(endpoints []string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), DialTimeout: startTimeout})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// FreePorts finds unused ports of 127.0.0.1. The ports are below those that systems choose for outgoing connections: so
// no connection takes a port before its process listens, or between two lives of the process.
func FreePorts(n int) ([]int, error) {
	const least, above, tries = 10_000, 32_000, 1000
	var ports []int
	for try := 1; len(ports) < n; try++ {
		port := least + rand.IntN(above-least)
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		switch {
		case err == nil:
			defer listener.Close()
			ports = append(ports, port)
		case try == tries:
			return nil, fmt.Errorf("find a free port: %w", err)
		}
	}
	return ports, nil
}
