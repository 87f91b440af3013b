package rig

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

const startTimeout = time.Minute

// Cluster is an etcd whose members are processes of their own, on loopback.
type Cluster struct {
	Endpoints []string
	specs     []memberSpec
	Members   []*Child
	Admin     *clientv3.Client // for what is asked besides the load
}

// StartEtcd starts a cluster with empty data directories below dir.
func StartEtcd(ctx context.Context, dir string, size int, retention string) (*Cluster, error) {
	ports, err := freePorts(2 * size)
	if err != nil {
		return nil, err
	}
	specs := make([]memberSpec, size)
	var all []string
	for i := range specs {
		name := fmt.Sprintf("m%d", i)
		specs[i] = memberSpec{
			Name: name, Dir: filepath.Join(dir, name), Retention: retention,
			Client: fmt.Sprintf("http://127.0.0.1:%d", ports[2*i]), Peer: fmt.Sprintf("http://127.0.0.1:%d", ports[2*i+1]),
		}
		all = append(all, name+"="+specs[i].Peer)
	}
	c := &Cluster{specs: specs, Members: make([]*Child, size)}
	errs := make([]error, size)
	var group sync.WaitGroup
	for i := range specs { // each is ready only once it has met the others
		specs[i].Cluster = strings.Join(all, ",")
		c.Endpoints = append(c.Endpoints, specs[i].Client)
		group.Go(func() { c.Members[i], errs[i] = startMember(ctx, specs[i], startTimeout) })
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

// StartMember starts a member that has ended again, with the data it had, and
// waits until it serves.
func (c *Cluster) StartMember(ctx context.Context, i int, limit time.Duration) error {
	member, err := startMember(ctx, c.specs[i], limit)
	if err == nil {
		c.Members[i] = member
	}
	return err
}

// askTimeout is how long a member may take to tell about itself.
const askTimeout = 2 * time.Second

// Leader tells which member leads the others. Some may be gone.
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

func startMember(ctx context.Context, spec memberSpec, limit time.Duration) (*Child, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), memberVariable+"="+string(text))
	log, err := os.Create(spec.Dir + ".log")
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	giveUp := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	line, _ := bufio.NewReader(stdout).ReadString('\n')
	member := newChild(cmd, log, stdin)
	if line != memberReady+"\n" {
		member.Kill()
		return nil, fmt.Errorf("etcd %s did not start: %s", spec.Name, member.LogTail())
	}
	return member, nil
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

// PIDs are the ids of the members' processes.
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

// freePorts finds ports of 127.0.0.1 that nobody listens on.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer listener.Close()
		ports = append(ports, listener.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}
