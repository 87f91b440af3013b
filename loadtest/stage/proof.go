package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// Verify runs licet store verify on the store, or on the store that the flags name, and
// returns the number of keys of each family. A violation is an error.
func (s *Stage) Verify(ctx context.Context, where ...string) (map[string]int, error) {
	if len(where) == 0 {
		where = []string{"--etcd-endpoints", s.Endpoints()}
	}
	out, failed := s.Licet.Command(ctx, append([]string{"store", "verify", "--output", "json"}, where...)...)
	var report struct {
		Violations []json.RawMessage `json:"violations"`
		Summary    struct {
			Families map[string]int `json:"families"`
		} `json:"summary"`
	}
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, errors.Join(failed, fmt.Errorf("licet store verify: %w", err))
	}
	for _, v := range report.Violations {
		failed = errors.Join(failed, fmt.Errorf("licet store verify: %s", v))
	}
	return report.Summary.Families, failed
}

// VerifyRestored backs the store up, restores the backup, and verifies the restored store. The restored store must
// have as many keys of each family as stored says, but for the registrations of nodes and delivery workers: these end
// with leases.
func (s *Stage) VerifyRestored(ctx context.Context, stored map[string]int) error {
	dir, err := os.MkdirTemp(s.dir, "restored-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(s.dir, "backup.db")
	if _, err := s.Licet.Command(ctx, "store", "backup", file, "--etcd-endpoints", s.Endpoints()); err != nil {
		return err
	}
	if _, err := s.Licet.Command(ctx, "store", "restore", file, "--data-dir", dir); err != nil {
		return err
	}
	restored, err := s.Verify(ctx, "--data-dir", dir)
	want := maps.Clone(stored) // of Verify, once the nodes have ended
	for _, leased := range []string{"node", "delivery_lease"} {
		delete(want, leased)
		delete(restored, leased)
	}
	if err == nil && !maps.Equal(want, restored) {
		err = fmt.Errorf("the store has these keys by family: %v; the restored backup has: %v", want, restored)
	}
	return err
}

// Bugs returns what nodes have written into their logs and must never write: panics and data races.
func (s *Stage) Bugs() (found []string) {
	for _, text := range s.Logs {
		for _, bug := range []string{"panic", "DATA RACE"} {
			if at := strings.Index(text, bug); at >= 0 {
				found = append(found, fmt.Sprintf("a node's log has %q: %.2000s", bug, text[at:]))
			}
		}
	}
	return found
}

// KeepLogs writes the logs of all nodes into a directory, if one is named, and makes the directory: first the logs of
// nodes that have ended, in the order of their ends.
func (s *Stage) KeepLogs(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep the logs: %w", err)
	}
	var errs []error
	logs := s.Logs
	for _, n := range s.Nodes {
		if n.Running() {
			text, err := n.Log()
			logs, errs = append(logs, text), append(errs, err)
		}
	}
	for i, text := range logs {
		errs = append(errs, os.WriteFile(filepath.Join(dir, fmt.Sprintf("node-%d.log", i+1)), []byte(text), 0o600))
	}
	return errors.Join(errs...)
}

// Contradictions asks each running node how many licenses that contradict themselves it
// has met, and returns a line for each node that has met any.
func (s *Stage) Contradictions(ctx context.Context) (found []string) {
	for i, n := range s.Nodes {
		if !n.Running() {
			continue
		}
		metrics, err := n.Scrape(ctx)
		violations, missing := metrics.Value("licet_invariant_violations_total")
		if err = errors.Join(err, missing); err != nil || violations != 0 {
			found = append(found,
				fmt.Sprintf("node %d has met %v licenses that contradict themselves: %v", i+1, violations, err))
		}
	}
	return found
}
