package service_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/nodetest"
	"licet/kv"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
)

// BenchmarkAuthenticate looks up a remembered key, and notes its use.
func BenchmarkAuthenticate(b *testing.B) {
	instruments := metrics.New(prometheus.NewRegistry(), "test", "", "")
	ctx, cancel := context.WithCancel(context.Background())
	store, err := kv.Open(ctx, kv.Config{Endpoints: nodetest.Endpoints(), Metrics: instruments, Log: zerolog.Nop()})
	if err != nil {
		b.Fatal(err)
	}
	ring, err := keyring.ParseMasterRing(lineM1 + lineM2)
	if err != nil {
		b.Fatal(err)
	}
	n := service.New(service.Config{
		Config: node.Config{
			Records:     store,
			Queries:     store,
			LicenseKeys: nodetest.LicenseKeys,
			Clock:       time.Now,
			Metrics:     instruments,
			Log:         zerolog.Nop(),
		},
		Sweeps:  store,
		Events:  store,
		Keys:    store,
		Ring:    ring,
		Entropy: rand.Reader,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.FollowKeys(ctx)
	}()
	defer func() {
		cancel()
		<-ended
		_ = store.Close()
	}()
	issued, _, err := n.CreateAPIKey(ctx, shopKey(nil))
	if err != nil {
		b.Fatal(err)
	}
	for keys := 0; keys == 0; keys, _ = n.CachedKeys() {
		if _, err := n.Authenticate(ctx, issued.Text); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if key, err := n.Authenticate(ctx, issued.Text); err != nil || key == nil {
			b.Fatalf("got %v, %v", key, err)
		}
	}
}
