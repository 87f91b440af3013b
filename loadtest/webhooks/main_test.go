package main

import (
	"testing"

	"licet/internal/process"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	process.BeEtcd()
	m.Run()
}
