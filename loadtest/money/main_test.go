package main

import (
	"testing"

	"licet/internal/process"
)

func TestMain(m *testing.M) {
	process.BeEtcd()
	m.Run()
}
