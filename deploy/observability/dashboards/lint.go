package dashboards

import (
	"fmt"
	"strings"
)

// LintFile is the file with the linter's exceptions.
const LintFile = ".lint"

// LintExceptions returns the content of that file: each panel that a rule is not meant
// for, with the reason.
func LintExceptions() []byte {
	rules := []struct {
		name, reason string
		of           []scope
	}{
		{"target-job-rule", "etcd's members are selected by $etcd_job.", []scope{members}},
		{"target-instance-rule", "etcd's members are selected by $etcd_instance; what rules have recorded is of all " +
			"instances.", []scope{members, recording}},
	}
	var out strings.Builder
	out.WriteString("# Written by make dashboards. What dashboard-linter leaves out, and why.\nexclusions:\n")
	for _, rule := range rules {
		fmt.Fprintf(&out, "  %s:\n    reason: %q\n    entries:\n", rule.name, rule.reason)
		for _, of := range rule.of {
			for _, p := range pages() {
				for _, panel := range p.all() {
					if panel.Of == of {
						fmt.Fprintf(&out, "      - dashboard: %q\n        panel: %q\n", p.Title, panel.Title)
					}
				}
			}
		}
	}
	return []byte(out.String())
}
