package stage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"licet/loadtest/rig"
)

const (
	// PublicURL is the address of the service behind the balancer. The balancer sends
	// requests for it to the nodes, so the name needs no DNS.
	PublicURL = "http://licenses.example.com"

	// stopTime is how long a node may take to end: its drain delay and its shutdown timeout.
	stopTime = 30 * time.Second
	// historyKept is how much history etcd keeps, as the operations page says.
	historyKept = "1h"
)

// Together returns the flags of nodes that know of each other.
func Together() []string { return []string{"--internal-listen", "127.0.0.1:0"} }

// BehindBalancer returns the flags of nodes that know of each other and are reached through the balancer only.
func BehindBalancer() []string {
	return append(Together(), "--public-url", PublicURL, "--drain-delay", "300ms")
}

// Config describes a stage.
type Config struct {
	rig.Setup
	Name    string   // of the program, for its directory
	Members int      // of etcd
	Nodes   int      // of licet
	Flags   []string // of the nodes, besides the usual ones
}

// Stage is an etcd with nodes in front of it. One goroutine at a time ends, kills and
// starts nodes.
type Stage struct {
	Licet *rig.Licet
	Etcd  *rig.Cluster
	Nodes []*rig.Node

	// Logs has the logs of nodes that have ended.
	Logs []string

	dir string
}

// New starts etcd and the nodes. Stop ends them.
func New(ctx context.Context, cfg *Config) (_ *Stage, err error) {
	s := &Stage{}
	if s.dir, err = os.MkdirTemp(cfg.Dir, "licet-"+cfg.Name+"-"); err != nil {
		return nil, fmt.Errorf("make a directory for the store: %w", err)
	}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	if s.Licet, err = rig.BuildLicet(ctx, s.dir, &cfg.Setup); err != nil {
		return nil, err
	}
	store := filepath.Join(s.dir, "store")
	if err = os.Mkdir(store, 0o700); err != nil {
		return nil, err
	}
	if s.Etcd, err = rig.StartEtcd(ctx, store, cfg.Members, historyKept); err != nil {
		return nil, err
	}
	for range cfg.Nodes {
		n, err := s.Licet.StartNode(ctx, s.Etcd, cfg.Flags...)
		if err != nil {
			return nil, err
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s, nil
}

// Balancer returns a balancer in front of the nodes, which keep their addresses when they
// are restarted.
func (s *Stage) Balancer() *Balancer {
	var addresses []string
	for _, n := range s.Nodes {
		addresses = append(addresses, n.Address)
	}
	return newBalancer(addresses)
}

// Roll restarts one node after the other, each once the one before is ready again.
func (s *Stage) Roll(ctx context.Context) error {
	for _, n := range s.Nodes {
		if err := s.end(n); err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// End ends a node in order.
func (s *Stage) End(node int) error { return s.end(s.Nodes[node]) }

// end is a no-op for a node that has ended already.
func (s *Stage) end(n *rig.Node) error {
	if !n.Running() {
		return nil
	}
	err := n.End(stopTime)
	s.keepLog(n)
	if err != nil {
		return err // it may not have ended yet
	}
	if code := n.ExitCode(); code != 0 {
		return fmt.Errorf("a node that was asked to end has exit code %d: %s", code, n.LogTail())
	}
	return nil
}

func (s *Stage) keepLog(n *rig.Node) {
	if text, err := n.Log(); err == nil {
		s.Logs = append(s.Logs, text)
	}
}

// Crash sends SIGKILL to a node.
func (s *Stage) Crash(node int) {
	s.Nodes[node].Kill()
	s.keepLog(s.Nodes[node])
}

// EndAll ends all running nodes in order.
func (s *Stage) EndAll() error {
	var errs []error
	for _, n := range s.Nodes {
		errs = append(errs, s.end(n))
	}
	return errors.Join(errs...)
}

// Stop kills what still runs, and removes the store.
func (s *Stage) Stop() {
	for _, n := range s.Nodes {
		n.Kill()
	}
	if s.Etcd != nil {
		s.Etcd.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// Endpoints returns the addresses of etcd, as commands take them.
func (s *Stage) Endpoints() string { return strings.Join(s.Etcd.Endpoints, ",") }
