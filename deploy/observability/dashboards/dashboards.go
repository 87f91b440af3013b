package dashboards

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"go.yaml.in/yaml/v3"
)

// File is a dashboard with the name of the file that it is written to.
type File struct {
	Name      string
	Dashboard dashboard.Dashboard
}

//go:embed *.yaml
var sources embed.FS

// The labels that a dashboard's variables select by. Only series from Kubernetes have a namespace and a pod: the "All"
// of these variables also matches series without them.
const (
	ofLicet    = `job=~"$job", namespace=~"$namespace", pod=~"$pod", instance=~"$instance"`
	ofEtcd     = `job=~"$etcd_job", namespace=~"$etcd_namespace", instance=~"$etcd_instance"`
	ofRecorded = `job=~"$job", namespace=~"$namespace"`
)

// selectors returns what the words of an expression stand for: @nodes, @members and @recorded select series by the
// variables. @requests selects requests at nodes, but no probes, scrapes and profiles, which are for operators.
func selectors() *strings.Replacer {
	return strings.NewReplacer("@nodes", ofLicet, "@members", ofEtcd, "@recorded", ofRecorded, "@requests",
		ofLicet+`, route!~"/livez|/readyz|/metrics|/debug/pprof/.*"`)
}

// pages reads the dashboards. pages panics if a file is wrong: the files are a part of this package.
func pages() []page {
	var list []page
	for _, name := range []string{"overview", "activation", "store", "commerce"} {
		p, err := readPage(name)
		if err != nil {
			panic(fmt.Sprintf("%s.yaml: %v", name, err))
		}
		list = append(list, *p)
	}
	return list
}

func readPage(name string) (*page, error) {
	text, err := sources.ReadFile(name + ".yaml")
	if err != nil {
		return nil, err
	}
	p := &page{File: "licet-" + name + ".json", UID: "licet-" + name, variables: ofNodes()}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(p); err != nil {
		return nil, err
	}
	if p.Members {
		p.variables = append(p.variables, ofMembers()...)
	}
	selected := selectors()
	for _, r := range p.Rows {
		for i := range r.Panels {
			panel := &r.Panels[i]
			if panel.Expr != "" {
				panel.Queries = []query{panel.query}
			}
			for q := range panel.Queries {
				panel.Queries[q].Expr = selected.Replace(panel.Queries[q].Expr)
			}
		}
	}
	return p, nil
}

// All builds the dashboards.
func All() ([]File, error) {
	var files []File
	for _, p := range pages() {
		built, err := p.build().Build()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.File, err)
		}
		files = append(files, File{p.File, built})
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
