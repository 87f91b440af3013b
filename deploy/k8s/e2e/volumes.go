package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// sharedDir is where the volume of backups is on each node: one place for all of them, as
// the volumes of a storage network are.
const sharedDir = "/var/lib/volumes/shared"

// addVolumes makes the volumes that claims are bound to, since nothing here makes them by
// itself: on each node one for the data of a member, and one more for a member that is
// restored, and one for backups that any node can mount.
func (c *cluster) addVolumes(ctx context.Context) error {
	var text strings.Builder
	text.WriteString(storageClass)
	shared := filepath.Join(workDir, "shared")
	if err := os.MkdirAll(shared, 0o755); err != nil {
		return err
	}
	for _, n := range c.nodes {
		local := filepath.Join(n.dir, "lib", "volumes")
		for _, name := range []string{"0", "1", "shared"} {
			if err := os.MkdirAll(filepath.Join(local, name), 0o755); err != nil {
				return err
			}
		}
		mount := n.inside(ctx, "mount", "--bind", shared, sharedDir)
		if _, err := output(mount); err != nil {
			return err
		}
		for i := range 2 {
			fmt.Fprintf(&text, volume, fmt.Sprintf("%s-%d", n.name, i), "32Gi", fmt.Sprintf("/var/lib/volumes/%d", i), n.name)
		}
	}
	fmt.Fprintf(&text, volume, "shared", "100Gi", sharedDir, strings.Join(nodeNames(), ", "))
	return c.apply(ctx, text.String())
}

// storageClass is the default one, as a cluster has it.
const storageClass = `---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata:
  name: local
  annotations: {storageclass.kubernetes.io/is-default-class: "true"}
provisioner: kubernetes.io/no-provisioner
volumeBindingMode: WaitForFirstConsumer
`

const volume = `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: %s}
spec:
  capacity: {storage: %s}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  storageClassName: local
  local: {path: %s}
  nodeAffinity:
    required:
      nodeSelectorTerms:
        - matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]
`

// free returns how much room there is where the files of a run lie.
func free() (uint64, error) {
	var at syscall.Statfs_t
	err := syscall.Statfs(filepath.Dir(workDir), &at)
	return at.Bavail * uint64(at.Bsize), err
}
