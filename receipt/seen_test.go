package receipt_test

import (
	"fmt"
	"reflect"
	"testing"

	"licet/receipt"
)

func seenOf(license string, revision int64) receipt.SeenLicense {
	return receipt.SeenLicense{LicenseID: license, Revision: revision}
}

// others returns n licenses that the device has seen, none of which is the license of the vectors.
func others(n int) []receipt.SeenLicense {
	var seen []receipt.SeenLicense
	for i := range n {
		seen = append(seen, seenOf(fmt.Sprintf("lic_%d", i+1), 900))
	}
	return seen
}

// addSeenVectors adds vectors about programs that have had several licenses. The receipt has revision 7.
func addSeenVectors(add func(name, want string, change func(*vector)), license string) {
	seen := func(change func(*receipt.Seen)) func(*vector) {
		return func(e *vector) {
			e.Seen = receipt.Seen{Time: now - hour, Keys: now - day, SeenLicense: seenOf("lic_other", 900)}
			change(&e.Seen)
		}
	}
	add("seen before another license, again", "", seen(func(s *receipt.Seen) {
		s.Earlier = append(others(1), seenOf(license, 7))
	}))
	add("newer than seen before another license", "", seen(func(s *receipt.Seen) {
		s.Earlier = append(others(2), seenOf(license, 6))
	}))
	add("older than seen before another license", "older", seen(func(s *receipt.Seen) {
		s.Earlier = []receipt.SeenLicense{seenOf(license, 8)}
	}))
	add("older than seen before fifteen other licenses", "older", seen(func(s *receipt.Seen) {
		s.Earlier = append(others(receipt.MaxSeenLicenses-2), seenOf(license, 8))
	}))
	add("the first of sixteen licenses, again", "", seen(func(s *receipt.Seen) {
		s.Earlier = append(others(receipt.MaxSeenLicenses-2), seenOf(license, 7))
	}))
	add("the seventeenth license: the device forgets the first", "", seen(func(s *receipt.Seen) {
		s.Earlier = others(receipt.MaxSeenLicenses - 1)
	}))
	add("older than seen before another license, and the clock set back", "older", seen(func(s *receipt.Seen) {
		s.Time, s.Earlier = now+day, []receipt.SeenLicense{seenOf(license, 8)}
	}))
	add("seen twice, the older revision first", "older", seen(func(s *receipt.Seen) {
		s.Earlier = []receipt.SeenLicense{seenOf(license, 6), seenOf(license, 8)}
	}))
}

// TestSeenLicenses: a device remembers its last 16 licenses, the latest first, and refuses older receipts of each.
func TestSeenLicenses(t *testing.T) {
	v := makeVectors(t)
	find := func(name string) *vector {
		for i := range v.Vectors {
			if v.Vectors[i].Name == name {
				return &v.Vectors[i]
			}
		}
		t.Fatalf("no vector is named %q", name)
		return nil
	}
	const license = "lic_77vwt5zc5zqn856r8rb6xh0hgc"
	many := others(receipt.MaxSeenLicenses - 1)
	full := append([]receipt.SeenLicense{seenOf("lic_other", 900)}, many[:14]...)
	for name, want := range map[string][]receipt.SeenLicense{
		"newer than seen before another license":                {seenOf("lic_other", 900), many[0], many[1]},
		"the first of sixteen licenses, again":                  full,
		"the seventeenth license: the device forgets the first": full,
	} {
		e := find(name)
		before := fmt.Sprint(e.Seen)
		_, after := verify(t, v, e)
		if after.SeenLicense != seenOf(license, 7) || !reflect.DeepEqual(after.Earlier, want) {
			t.Errorf("%s: the device has seen %v, want %v", name, after, want)
		}
		if fmt.Sprint(e.Seen) != before {
			t.Errorf("%s: the state before has become %v", name, e.Seen)
		}
	}
}
