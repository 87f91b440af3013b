package keyring_test

import "testing"

func BenchmarkParseLicenseKey(b *testing.B) {
	keys := keysWith(checkKey)
	key := someKeys(1)[0]
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := keys.Parse(key); err != nil {
			b.Fatal(err)
		}
	}
}
