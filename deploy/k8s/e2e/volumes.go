package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sharedDir is where the volume of backups is on each node: one place for all nodes, as in
// a storage network.
const sharedDir = "/var/lib/volumes/shared"

// addVolumes makes the volumes for the claims, since nothing here makes volumes by itself:
// on each node one for a member, one more for a member that is restored, and one for
// backups that any node can mount.
func (c *cluster) addVolumes(ctx context.Context) {
	var text strings.Builder
	text.WriteString(storageClass)
	shared := filepath.Join(workDir, "shared")
	stopIf(os.MkdirAll(shared, 0o755))
	for _, n := range c.nodes {
		local := filepath.Join(n.dir, "lib", "volumes")
		for _, name := range []string{"0", "1", "shared"} {
			stopIf(os.MkdirAll(filepath.Join(local, name), 0o755))
		}
		mount := n.inside(ctx, "mount", "--bind", shared, sharedDir)
		must(output(mount))
		for i := range 2 {
			fmt.Fprintf(&text, volume, fmt.Sprintf("%s-%d", n.name, i), "32Gi", fmt.Sprintf("/var/lib/volumes/%d", i),
				n.name)
		}
	}
	fmt.Fprintf(&text, volume, "shared", "100Gi", sharedDir, strings.Join(nodeNames(), ", "))
	c.apply(ctx, text.String())
}

// free returns how much room there is for the files of a run.
func free() (uint64, error) {
	var at syscall.Statfs_t
	err := syscall.Statfs(filepath.Dir(workDir), &at)
	return at.Bavail * uint64(at.Bsize), err
}
