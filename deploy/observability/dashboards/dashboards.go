package dashboards

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// File is a dashboard with the name of the file that it is written to.
type File struct {
	Name      string
	Dashboard dashboard.Dashboard
}

func pages() []page { return []page{overview(), activation(), store(), commerce()} }

// All builds the dashboards.
func All() ([]File, error) {
	var files []File
	for _, p := range pages() {
		built, err := p.build().Build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.file, err)
		}
		files = append(files, File{p.file, built})
	}
	return files, nil
}

// JSON returns the file's content.
func (f File) JSON() ([]byte, error) {
	out, err := json.MarshalIndent(f.Dashboard, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Name, err)
	}
	// The builder's types escape for HTML, regardless of the encoder's settings. Without, PromQL
	// can be read, and searched for.
	for escaped, plain := range map[string]string{`\u003c`: "<", `\u003e`: ">", `\u0026`: "&"} {
		out = bytes.ReplaceAll(out, []byte(escaped), []byte(plain))
	}
	return append(out, '\n'), nil
}
