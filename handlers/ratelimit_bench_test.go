package handlers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"licet/handlers/limits"
)

// BenchmarkRateLimits measures the cost of limits for an activation: the difference of its time with and without
// limits, from its parsed head to its response. One server alternates between both every few requests, and the
// benchmark compares the medians. The store is in memory and responds at once. With etcd, an activation takes about
// ten times as long, so the share of the limits is a tenth.
//
// The benchmark fails if the default limits cost too much.
func BenchmarkRateLimits(b *testing.B) {
	plenty := limits.Rate{Count: 1_000_000, Per: time.Second}
	for _, c := range []struct {
		name string
		cfg  limits.Config
		most float64 // 0: no bound
	}{
		{"by_default", limits.Config{Address: limits.Rate{Count: 60, Per: time.Minute},
			Account: limits.Rate{Count: 500, Per: time.Second}}, 1.02},
		{"by_license_too", limits.Config{Address: plenty, Account: plenty, License: plenty}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.cfg.Clock = time.Now
			with, err := limits.New(c.cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer with.Close()
			sides := [2]*limits.Limits{with, {}}
			var took [len(sides)][]time.Duration
			server, request := benchServer(b, nil)
			ctx := parsed(b, request)
			const requests = 10
			for b.Loop() {
				for side, l := range sides {
					server.SetLimits(l)
					began := time.Now()
					for range requests {
						ctx.Response.Reset()
						server.ServeRequest(ctx)
					}
					took[side] = append(took[side], time.Since(began))
				}
			}
			if ctx.Response.StatusCode() != fasthttp.StatusOK {
				b.Fatalf("%s", &ctx.Response)
			}
			ratio := float64(middle(took[0])) / float64(middle(took[1]))
			b.ReportMetric(ratio, "with/without")
			if c.most > 0 && ratio > c.most && b.N > 1000 {
				b.Errorf("an activation with limits takes %.3f times as long, want at most %.3f", ratio, c.most)
			}
		})
	}
}

// BenchmarkGuess measures a guessed license key from an address beyond its limit, from its parsed head to its response.
func BenchmarkGuess(b *testing.B) {
	l, err := limits.New(limits.Config{Address: limits.Rate{Count: 1, Per: time.Hour}, Clock: time.Now})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	server, request := benchServer(b, nil)
	server.SetLimits(l)
	ctx := parsed(b, request)
	ctx.Request.SetBodyString(`{"license_key":"LIC-00000-00000-00000-00000-00000","device_id":"d1"}`)
	server.ServeRequest(ctx)
	b.ReportAllocs()
	for b.Loop() {
		ctx.Response.Reset()
		server.ServeRequest(ctx)
	}
	if ctx.Response.StatusCode() != fasthttp.StatusTooManyRequests {
		b.Fatalf("%s", &ctx.Response)
	}
}

func middle(times []time.Duration) time.Duration {
	slices.Sort(times)
	return times[len(times)/2]
}
