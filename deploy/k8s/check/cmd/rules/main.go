// Command rules writes deploy/k8s/components/monitoring/rules.yaml: make manifests.
package main

import (
	"fmt"
	"os"

	"licet/deploy/k8s/check/rules"
)

func main() {
	text, err := rules.Text("../../prometheus/rules")
	if err == nil {
		err = os.WriteFile("../components/monitoring/rules.yaml", text, 0o644)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "rules: %v\n", err)
		os.Exit(1)
	}
}
