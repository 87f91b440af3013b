package main

import (
	"fmt"
	"os"
	"syscall"
)

// otherRead is the permission of all users to read a file.
const otherRead = 0o004

// checkPrivate returns an error if every user of this machine can read a file of secrets. On a read-only mount the
// permissions do not matter: that is how containers get their secrets, and only the container has the mount.
func checkPrivate(file *os.File) error {
	info, err := file.Stat()
	if err != nil || info.Mode()&otherRead == 0 {
		return err
	}
	var mount syscall.Statfs_t
	if err := syscall.Fstatfs(int(file.Fd()), &mount); err != nil {
		return fmt.Errorf("find out how %s is mounted: %w", file.Name(), err)
	}
	const readOnly = 1 // ST_RDONLY, see statfs(2)
	if mount.Flags&readOnly != 0 {
		return nil
	}
	return fmt.Errorf("every user of this machine can read %s: run chmod o= on it", file.Name())
}
