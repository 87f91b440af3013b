package rig

import "testing"

func TestParseStatus(t *testing.T) {
	if got, err := parseStatus("Name:\ta\nVmRSS:\t    2048 kB\n", "VmRSS"); err != nil || got != 2<<20 {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := parseStatus("Name:\ta\n", "VmRSS"); err == nil {
		t.Error("one without memory is read")
	}
}
