package main

import (
	"testing"

	"licet/loadtest/rig"
)

// TestMain makes this binary a member of etcd where it was started as one.
func TestMain(m *testing.M) {
	rig.BeEtcd()
	m.Run()
}
