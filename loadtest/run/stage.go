package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"licet/loadtest/rig"
)

// stage is the service that the load is put on: nodes and an etcd that were
// started for it, or something that runs already.
type stage struct {
	urls   []string
	apiKey string
	run    string // marks what this run makes, on a store that others use too
	client *http.Client

	// Only of what was started here.
	dir   string
	licet *rig.Licet // nil: somebody else's
	etcd  *rig.Cluster
	nodes []*rig.Node
}

// historyKept is how much history etcd keeps, as the operations page says.
const historyKept = "1h"

func newStage(ctx context.Context, cfg *config, progress *rig.Progress) (s *stage, err error) {
	s = &stage{
		run:    strconv.FormatInt(time.Now().UnixMilli(), 36),
		client: &http.Client{Timeout: answerTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: readers}},
	}
	if len(cfg.targets) > 0 {
		s.urls, s.apiKey = cfg.targets, cfg.apiKey
		return s, nil
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if s.dir, err = os.MkdirTemp(cfg.Dir, "licet-load-"); err != nil {
		return s, fmt.Errorf("make a directory for the store: %w", err)
	}
	progress.Step("building licet, starting etcd (members: %d) and licet (nodes: %d)", cfg.scenario.Members, cfg.nodes)
	if s.licet, err = rig.BuildLicet(ctx, s.dir, &cfg.Setup); err != nil {
		return s, err
	}
	store := filepath.Join(s.dir, "store")
	if err = os.Mkdir(store, 0o700); err != nil {
		return s, err
	}
	if s.etcd, err = rig.StartEtcd(ctx, store, cfg.scenario.Members, historyKept); err != nil {
		return s, err
	}
	if s.apiKey, err = s.licet.CreateKey(ctx, s.etcd, "load"); err != nil {
		return s, err
	}
	for range cfg.nodes {
		n, err := s.licet.StartNode(ctx, s.etcd, "--internal-listen", "127.0.0.1:0")
		if err != nil {
			return s, err
		}
		s.nodes = append(s.nodes, n)
		s.urls = append(s.urls, "http://"+n.Address)
	}
	return s, nil
}

// stop ends what was started, and removes the store: what it proved is in the
// reports.
func (s *stage) stop() {
	s.client.CloseIdleConnections()
	for _, n := range s.nodes {
		n.Kill()
	}
	if s.etcd != nil {
		s.etcd.Stop()
	}
	if s.dir != "" {
		_ = os.RemoveAll(s.dir)
	}
}

// keepLogs puts the nodes' logs beside the reports; of a node that was started
// again, the last one.
func (s *stage) keepLogs(out *results) {
	for i, n := range s.nodes {
		if text, err := n.Log(); err == nil {
			_ = os.WriteFile(out.path(fmt.Sprintf("node-%d.log", i+1)), []byte(text), 0o600) // for people who wonder
		}
	}
}

// someURL is that of a node that is ready, waiting for one if need be.
func (s *stage) someURL(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, recoveryTime)
	defer cancel()
	for {
		for _, url := range s.urls {
			if s.ready(ctx, url) {
				return url, nil
			}
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("no node is ready within %v of the load's end", recoveryTime)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// recoveryTime is how long after the load a service may take until it is
// ready again.
const recoveryTime = 30 * time.Second

func (s *stage) ready(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := s.client.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}
