package layout

import (
	"fmt"
	"testing"
	"time"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/licensing"
	"licet/node/store"
)

// BenchmarkOrder encodes and decodes an order with every field set.
func BenchmarkOrder(b *testing.B) {
	order := &Order{Order: *goldenOrder(), Writers: goldenLicense().Writers, LastEvent: keyspace.Location{Epoch: 1}}
	order.Order.Sequence = 7
	value := order.Encode()
	ref := licensing.OrderRef(kvtest.Owner, order.Order.OrderNo)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_ = order.Encode()
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodeOrder(ref, value)
		}
	})
}

// BenchmarkDeliveryLog encodes and decodes a page of 100 deliveries with one or two attempts each.
func BenchmarkDeliveryLog(b *testing.B) {
	delivered := make([]store.Delivery, 100)
	for i := range delivered {
		d := kvtest.Delivery()
		d.EventID, d.Attempts = fmt.Sprintf("evt_%03d", i), d.Attempts[:1+i%2]
		d.Attempts[0].At = kvtest.Time.Add(time.Duration(i) * time.Second)
		delivered[i] = d
	}
	page := PagesOf(delivered)[0].Value
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			PagesOf(delivered)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = DecodePage(page)
		}
	})
}
