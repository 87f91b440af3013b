package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"licet/kv/survey"
)

// oldBackup is the age from which on a backup is old. The alert LicetBackupOld has the same bound.
const oldBackup = 26 * time.Hour

// Store checks the content of a store. dev says that it is that of licet dev.
func (r *Report) Store(c survey.Content, dev bool, now time.Time) {
	if c.Err != nil {
		r.Fail("store", c.Err, "correct what the error names: nodes can't read the store either")
		return
	}
	switch {
	case c.Masters == 0:
		r.add(Warning, "master key", "run licet store master-key add, start nodes with the new file, and keep a copy: "+
			"without the file, all API keys are lost", "the store knows no master key")
	default:
		r.ok("master key", "the store knows %d", c.Masters)
	}
	if c.APIKeys == 0 {
		r.add(Warning, "API keys", "create the first one with licet store keys create", "there is no API key yet")
	} else {
		r.ok("API keys", "%d", c.APIKeys)
	}
	if dev {
		return
	}
	switch len(c.Nodes) {
	case 0:
		r.add(Warning, "nodes", "start nodes with licet serve", "no node is up")
	case 1:
		r.add(Warning, "nodes", "run two or more nodes behind a load balancer", "one node is up: its failure stops "+
			"the service")
	default:
		r.ok("nodes", "%d are up", len(c.Nodes))
	}
	switch age := now.Sub(c.Backup); {
	case c.Backup.IsZero():
		r.add(Warning, "backup", "run licet store backup DIRECTORY --keep 48 every hour: docs/guides/backup.md",
			"there is no backup")
	case age > oldBackup:
		r.add(Warning, "backup", "run licet store backup by hand and correct what its message names: "+
			"docs/runbooks/LicetBackupOld.md",
			"the last backup is %v old", age.Round(time.Hour))
	default:
		r.ok("backup", "%v old", age.Round(time.Minute))
	}
}

// Versions compares the versions of the nodes that are up with each other, and with own, the version of this program.
func (r *Report) Versions(nodes []string, own string) {
	const check = "node versions"
	counts := map[string]int{}
	for _, version := range nodes {
		counts[cmp.Or(version, "of an unknown version")]++
	}
	if len(counts) == 0 {
		return
	}
	versions := slices.Sorted(maps.Keys(counts))
	switch {
	case len(counts) > 1:
		var each []string
		for _, version := range versions {
			each = append(each, fmt.Sprintf("%d × %s", counts[version], version))
		}
		r.add(Warning, check, "finish the upgrade, or go back, so all nodes have one version: docs/guides/upgrade.md",
			"the nodes have %d versions: %s", len(counts), strings.Join(each, ", "))
	case versions[0] != own:
		r.add(Warning, check, "use the licet of the nodes' version for commands on the store, or upgrade the nodes: "+
			"docs/guides/upgrade.md", "the nodes are %s, and this licet is %s", versions[0], own)
	default:
		r.ok(check, "%s, as this licet", own)
	}
}
