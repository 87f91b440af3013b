// Package dashboards builds Licet's Grafana dashboards: what each one shows, in
// Go, so that selectors, units and links are written once. The command
// dashboards writes them as JSON into deploy/grafana, where they are committed;
// a test holds both equal.
package dashboards

import (
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// File is a dashboard with the name of the file that it is written to.
type File struct {
	Name      string
	Dashboard dashboard.Dashboard
}

// All builds the dashboards, in the order in which they link to each other.
func All() ([]File, error) {
	var files []File
	for _, d := range []struct {
		name  string
		build func() *dashboard.DashboardBuilder
	}{} {
		built, err := d.build().Build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		files = append(files, File{d.name, built})
	}
	return files, nil
}

// JSON gives the file's content.
func (f File) JSON() ([]byte, error) {
	out, err := json.MarshalIndent(f.Dashboard, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	return append(out, '\n'), nil
}
