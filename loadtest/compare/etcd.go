package main

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

// cluster is an etcd whose members are processes of their own, on loopback.
type cluster struct {
	endpoints []string
	specs     []memberSpec
	members   []*child
	admin     *clientv3.Client // for what is asked besides the load
}

// startEtcd starts a cluster with empty data directories below dir.
func startEtcd(ctx context.Context, dir string, size int, retention string) (*cluster, error) {
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
	c := &cluster{specs: specs, members: make([]*child, size)}
	errs := make([]error, size)
	var group sync.WaitGroup
	for i := range specs { // each is ready only once it has met the others
		specs[i].Cluster = strings.Join(all, ",")
		c.endpoints = append(c.endpoints, specs[i].Client)
		group.Go(func() { c.members[i], errs[i] = startMember(ctx, specs[i], startTimeout) })
	}
	group.Wait()
	err = errors.Join(errs...)
	if err == nil {
		c.admin, err = newEtcdClient(c.endpoints)
	}
	if err != nil {
		c.stop()
		return nil, err
	}
	return c, nil
}

func startMember(ctx context.Context, spec memberSpec, limit time.Duration) (*child, error) {
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
		member.kill()
		return nil, fmt.Errorf("etcd %s did not start: %s", spec.Name, member.logTail())
	}
	return member, nil
}

func (c *cluster) stop() {
	if c.admin != nil {
		_ = c.admin.Close()
	}
	for _, member := range c.members {
		if member != nil {
			member.kill()
		}
	}
}

func (c *cluster) pids() []int {
	var pids []int
	for _, member := range c.members {
		pids = append(pids, member.pid())
	}
	return pids
}

func newEtcdClient(endpoints []string) (*clientv3.Client, error) {
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
