// Dashboards writes Licet's Grafana dashboards as JSON into a folder, and
// beside them what the linter of dashboards is to leave out, with the reasons.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"licet/deploy/observability/dashboards"
)

func main() {
	out := flag.String("out", "../grafana", "folder to write to")
	flag.Parse()
	if err := run(*out); err != nil {
		fmt.Fprintln(os.Stderr, "dashboards:", err)
		os.Exit(1)
	}
}

func run(out string) error {
	files, err := dashboards.All()
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := f.JSON()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, f.Name), content, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(out, dashboards.LintFile), dashboards.LintExceptions(), 0o644)
}
