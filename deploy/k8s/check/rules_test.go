package check

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const rulesHead = "# Made from deploy/prometheus/rules: make manifests. Change it there.\n"

// operatorRules returns a PrometheusRule for each file of a folder, as the Prometheus
// operator wants it. It copies the groups as they are, comments included.
func operatorRules(folder string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yml"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there are no rules in %s: %w", folder, err)
	}
	var out bytes.Buffer
	for i, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		out.WriteString([]string{rulesHead, "---\n"}[min(i, 1)])
		name := strings.TrimSuffix(filepath.Base(file), ".yml")
		fmt.Fprintf(&out, `apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: licet-%s
  labels:
    app.kubernetes.io/name: licet
    app.kubernetes.io/component: rules
spec:
`, name)
		for line := range strings.Lines(string(text)) {
			if line != "\n" {
				line = "  " + line
			}
			out.WriteString(line)
		}
	}
	return out.Bytes(), nil
}
