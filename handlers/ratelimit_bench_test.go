package handlers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/valyala/fasthttp"

	"licet/handlers"
	"licet/limits"
)

// BenchmarkRateLimits tells what limits cost an activation: how much longer it
// takes with them than without, from its parsed head to its answer. Both take
// turns within each round, and the ratio is the median of all rounds. The store
// is one in memory, and answers at once: on the way through etcd, which takes
// ten times as long, the share is a tenth.
//
// It fails where the limits that there are by default cost more than they may.
func BenchmarkRateLimits(b *testing.B) {
	plenty := limits.Rate{Count: 1_000_000, Per: time.Second}
	for _, c := range []struct {
		name string
		cfg  limits.Config
		most float64 // 0: for information
	}{
		{"by_default", limits.Config{Address: limits.Rate{Count: 60, Per: time.Minute}, APIKey: limits.Rate{Count: 500, Per: time.Second}}, 1.02},
		{"by_license_too", limits.Config{Address: plenty, APIKey: plenty, License: plenty}, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.cfg.Clock = time.Now
			l, err := limits.New(c.cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close()
			without, request := benchServer(b)
			with, _ := benchServer(b, func(cfg *handlers.Config) { cfg.Limits = l })
			ctx := parsed(b, request)
			var ratios []float64
			for b.Loop() {
				ratios = append(ratios, turns(b, ctx, with, without))
			}
			slices.Sort(ratios)
			middle := ratios[len(ratios)/2]
			b.ReportMetric(middle, "with/without")
			if c.most > 0 && middle > c.most && len(ratios) > 100 {
				b.Errorf("it takes %.3f times as long, and %.3f is the most", middle, c.most)
			}
		})
	}
}

// turns lets two servers answer a request by turns, and gives how much longer
// the one takes than the other. Who begins changes from turn to turn.
func turns(b *testing.B, ctx *fasthttp.RequestCtx, one, other *handlers.Server) float64 {
	const turns, requests = 8, 100
	var took [2]time.Duration
	for turn := range turns {
		for i := range took {
			side := (turn + i) % len(took)
			server := []*handlers.Server{one, other}[side]
			began := time.Now()
			for range requests {
				ctx.Response.Reset()
				server.ServeRequest(ctx)
			}
			took[side] += time.Since(began)
		}
	}
	if ctx.Response.StatusCode() != fasthttp.StatusOK {
		b.Fatalf("%s", &ctx.Response)
	}
	return float64(took[0]) / float64(took[1])
}
