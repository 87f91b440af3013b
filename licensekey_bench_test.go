package licet_test

import (
	"testing"

	"licet"
)

func BenchmarkParseLicenseKey(b *testing.B) {
	check := licet.NewKeyCheck(checkKey)
	key := string(someKeys(1)[0])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := check.Parse(key); err != nil {
			b.Fatal(err)
		}
	}
}
