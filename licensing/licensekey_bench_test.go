package licensing_test

import (
	"testing"

	"licet/licensing"
)

func BenchmarkParseLicenseKey(b *testing.B) {
	check := licensing.NewKeyCheck(checkKey)
	key := string(someKeys(1)[0])
	b.ReportAllocs()
	for b.Loop() {
		if _, err := check.Parse(key); err != nil {
			b.Fatal(err)
		}
	}
}
