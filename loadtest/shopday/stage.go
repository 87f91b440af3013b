package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"licet/loadtest/rig"
)

const (
	// publicURL is where buyers and the shop reach the service. The balancer leads
	// there, so that nobody has to look the name up.
	publicURL = "http://licenses.example.com"

	// shortLife is how long an order of the morning can be paid.
	shortLife = 3 * time.Second
	// longLife is how long any other can be.
	longLife = 24 * time.Hour

	// stopTime is how long a node may take to end by itself.
	stopTime = 30 * time.Second
	// historyKept is how much history etcd keeps, as the operations page says.
	historyKept = "1h"
)

// stage is where the day is played: an etcd, and two nodes before it.
type stage struct {
	dir   string
	licet *rig.Licet
	etcd  *rig.Cluster
	nodes []*rig.Node

	logs        []string // of nodes that have ended
	longestStop time.Duration
}

const nodeCount = 2

func newStage(ctx context.Context, cfg *config) (s *stage, err error) {
	s = &stage{}
	if s.dir, err = os.MkdirTemp(cfg.Dir, "licet-shopday-"); err != nil {
		return nil, fmt.Errorf("make a directory for the store: %w", err)
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.licet, err = rig.BuildLicet(ctx, s.dir, &cfg.Setup); err != nil {
		return nil, err
	}
	store := filepath.Join(s.dir, "store")
	if err = os.Mkdir(store, 0o700); err != nil {
		return nil, err
	}
	if s.etcd, err = rig.StartEtcd(ctx, store, cfg.members, historyKept); err != nil {
		return nil, err
	}
	for range nodeCount {
		n, err := s.licet.StartNode(ctx, s.etcd, "--internal-listen", "127.0.0.1:0", "--public-url", publicURL,
			"--drain-delay", "300ms", "--test-order-lifetime", shortLife.String())
		if err != nil {
			return nil, err
		}
		s.nodes = append(s.nodes, n)
	}
	return s, nil
}

// addresses are those of the nodes; they keep them when they are restarted.
func (s *stage) addresses() []string {
	var list []string
	for _, n := range s.nodes {
		list = append(list, n.Address)
	}
	return list
}

// roll restarts one node after the other, each of them only once the one before
// is ready again.
func (s *stage) roll(ctx context.Context, flags ...string) error {
	for _, n := range s.nodes {
		n.SetFlags(flags...)
		if err := s.end(n); err != nil {
			return err
		}
		if err := n.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// end has a node end in order.
func (s *stage) end(n *rig.Node) error {
	began := time.Now()
	err := n.End(stopTime)
	s.longestStop = max(s.longestStop, time.Since(began))
	s.keepLog(n)
	if code := n.ExitCode(); err == nil && code != 0 {
		err = fmt.Errorf("a node that was asked to end has exit code %d: %s", code, n.LogTail())
	}
	return err
}

func (s *stage) keepLog(n *rig.Node) {
	if text, err := n.Log(); err == nil {
		s.logs = append(s.logs, text)
	}
}

// crash kills a node as kill -9 does.
func (s *stage) crash(node int) {
	s.nodes[node].Kill()
	s.keepLog(s.nodes[node])
}

// endAll has all nodes end in order.
func (s *stage) endAll() error {
	var errs []error
	for _, n := range s.nodes {
		errs = append(errs, s.end(n))
	}
	return errors.Join(errs...)
}

// stop ends whatever still runs, and removes the store.
func (s *stage) stop() {
	for _, n := range s.nodes {
		n.Kill()
	}
	if s.etcd != nil {
		s.etcd.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

func (s *stage) endpoints() string { return strings.Join(s.etcd.Endpoints, ",") }

// verify runs licet verify on a store, and gives how many keys of each family it
// has. It fails where anything is wrong.
func (s *stage) verify(ctx context.Context, where ...string) (map[string]int, error) {
	out, failed := s.licet.Command(ctx, append([]string{"verify", "--output", "json"}, where...)...)
	var report struct {
		Violations []json.RawMessage `json:"violations"`
		Summary    struct {
			Families map[string]int `json:"families"`
		} `json:"summary"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, errors.Join(failed, fmt.Errorf("licet verify: %w", err))
	}
	for _, v := range report.Violations {
		failed = errors.Join(failed, fmt.Errorf("licet verify: %s", v))
	}
	return report.Summary.Families, failed
}

// restored backs the store up, restores that, and gives what licet verify finds
// in it.
func (s *stage) restored(ctx context.Context) (map[string]int, error) {
	file, dir := filepath.Join(s.dir, "backup.db"), filepath.Join(s.dir, "restored")
	if _, err := s.licet.Command(ctx, "backup", file, "--etcd-endpoints", s.endpoints()); err != nil {
		return nil, err
	}
	if _, err := s.licet.Command(ctx, "restore", file, "--data-dir", dir); err != nil {
		return nil, err
	}
	return s.verify(ctx, "--data-dir", dir)
}
