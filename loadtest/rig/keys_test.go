package rig

import "testing"

func TestKeys(t *testing.T) {
	k := &Keys{}
	for _, key := range []string{"AB", "CD", "EF"} {
		if err := k.Add([]byte(key)); err != nil {
			t.Fatal(err)
		}
	}
	if k.Count() != 3 || string(k.At(1)) != "CD" {
		t.Errorf("got %d, %s", k.Count(), k.At(1))
	}
	if err := k.Add([]byte("LONG")); err == nil {
		t.Error("a key of another length is taken")
	}
}
