package rig

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"licet/internal/process"
)

// Node is licet serve in a process of its own.
type Node struct {
	*process.Child
	Address string
	Metrics string // URL

	program *Licet
	args    []string
}

// StartNode starts a node before a cluster and waits until it is ready. API keys
// are not limited, since a load has only one. The Go runtime reports its garbage collector
// in the node's log. more are flags besides the usual ones.
func (l *Licet) StartNode(ctx context.Context, etcd *Cluster, more ...string) (*Node, error) {
	ports, err := FreePorts(2)
	if err != nil {
		return nil, err
	}
	n := &Node{
		Address: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		Metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1]),
		program: l,
	}
	n.args = append([]string{
		"serve", "--etcd-endpoints", strings.Join(etcd.Endpoints, ","), "--master-key-file", l.Ring(),
		"--listen", n.Address, "--metrics-listen", fmt.Sprintf("127.0.0.1:%d", ports[1]), "--log-level", l.logLevel,
		"--rate-limit-account", "0", "--rate-limit-new-devices", "0",
		"--rate-limit-license-kib", "0", "--rate-limit-account-kib", "0",
	}, more...)
	if err := n.Start(ctx); err != nil {
		return nil, err
	}
	return n, nil
}

// Start starts a node again that has ended, at the address that it had, and waits until it
// is ready.
func (n *Node) Start(ctx context.Context) error {
	log, err := os.CreateTemp(n.program.dir, "node-*.log")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, n.program.Binary, n.args...)
	cmd.Env = plainEnvironment()
	if n.Child, err = process.Start(cmd, log); err != nil {
		return err
	}
	if err := n.Await(ctx); err != nil {
		n.Kill()
		return fmt.Errorf("a node did not start: %w: %s", err, n.LogTail())
	}
	return nil
}

// Await waits until the node reports that it is ready.
func (n *Node) Await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for !Ready(ctx, client, "http://"+n.Address+"/readyz") {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.Ended:
			return errors.New("it has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// Ready reports whether the URL by which a server says that it is ready answers 200.
func Ready(ctx context.Context, client *http.Client, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
