package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// results is the directory with the reports of a run.
type results struct{ dir string }

// newResults makes the directory, and removes the reports of an earlier run.
func newResults(cfg *config) (*results, error) {
	dir, err := filepath.Abs(cfg.out)
	if err != nil {
		return nil, err
	}
	r := &results{dir}
	if err := os.MkdirAll(dir, 0o700); err != nil { // license keys go in there
		return nil, fmt.Errorf("make the directory for reports: %w", err)
	}
	for _, name := range []string{"journal.txt", "licenses.json", "k6.log", "summary.txt", "summary.json",
		"report.html", "proof.json"} {
		if err := os.Remove(r.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("remove an old report: %w", err)
		}
	}
	return r, nil
}

func (r *results) path(name string) string { return filepath.Join(r.dir, name) }

// writeLicenses writes the keys of each group for the scripts.
func (r *results) writeLicenses(seeds []*seeded) error {
	groups := map[string][]string{}
	for i := range seeds {
		name := seeds[i].group.Name
		groups[name] = append(groups[name], seeds[i].key)
	}
	text, err := json.Marshal(groups)
	if err != nil {
		return err
	}
	return os.WriteFile(r.path("licenses.json"), text, 0o600)
}

// writeProof adds the proof to the summary that k6 has written, and writes it for programs.
func (r *results) writeProof(p *proof, took time.Duration) error {
	machine, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.path("proof.json"), append(machine, '\n'), 0o600); err != nil {
		return err
	}
	summary, err := os.OpenFile(r.path("summary.txt"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(p.Print(summary, took), summary.Close())
}
