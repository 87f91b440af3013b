package main

import (
	"fmt"
	"os"
	"syscall"
)

const gibibyte = 1 << 30

// checkDisk tells whether a directory's disk has room for what is to come.
func checkDisk(dir string, need int64) error {
	if dir == "" {
		dir = os.TempDir()
	}
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return fmt.Errorf("ask how much room %s has: %w", dir, err)
	}
	return judgeDisk(dir, need, int64(fs.Bavail)*int64(fs.Bsize))
}

func judgeDisk(dir string, need, free int64) error {
	if free < need {
		return fmt.Errorf("%.1f GiB are needed in %s, and %.1f GiB are free: free some, or name another directory with --dir",
			float64(need)/gibibyte, dir, float64(free)/gibibyte)
	}
	return nil
}
