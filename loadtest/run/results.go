package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"text/tabwriter"
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

// writeProof prints the proof, and adds it to the summary that k6 has written.
func (r *results) writeProof(stdout io.Writer, p *proof, failures ...error) error {
	text := p.text(errors.Join(failures...))
	if _, err := stdout.Write(text); err != nil {
		return fmt.Errorf("print the proof: %w", err)
	}
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
	_, err = summary.Write(text)
	if err = errors.Join(err, summary.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\nreports: %s\n", r.dir)
	return err
}

// shownProblems is how many contradictions are printed. proof.json has all of them.
const shownProblems = 20

// text returns the proof as a table. The last line is the verdict.
func (p *proof) text(failure error) []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, "\nacknowledged against stored")
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "acknowledged\tuncertain\tstored\t")
	for _, f := range p.Facts {
		fmt.Fprintf(table, "%d\t%d\t%d\t  %s\n", f.Acknowledged, f.Uncertain, f.Stored, f.What)
	}
	_ = table.Flush() // into memory
	for i, problem := range p.Problems {
		if i == shownProblems {
			fmt.Fprintf(&b, "… and %d more\n", len(p.Problems)-i)
			break
		}
		fmt.Fprintln(&b, "WRONG", problem)
	}
	verdict := "PASSED: nothing was lost, nothing is wrong"
	if failure != nil || len(p.Problems) > 0 {
		verdict = "FAILED"
	}
	fmt.Fprintln(&b, "\n"+verdict)
	return b.Bytes()
}
