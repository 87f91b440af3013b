package main

import (
	"context"
	"fmt"
	"strings"
	"time"
)

const (
	guessesPerSecond = 5000
	guessers         = 256 // connections
)

// guessing measures a storm of made-up license keys, alone and then while other licenses
// get new devices. While it is alone, the node asks etcd only for what a node at rest asks
// for; the names of operations tell these requests apart.
func (r *round) guessing(ctx context.Context) {
	list := r.warmed(ctx, r.cfg.Licenses)
	f := newFleet([]string{r.node.Address}, guessers, newGuess().of)
	defer f.close()
	stopIf(f.open())
	storm := func() *outcome {
		return f.openLoop(ctx, arrivals{rate: guessesPerSecond, span: r.cfg.Span})
	}

	askedBefore := r.asked(ctx)
	before := r.costs(ctx)
	alone := storm()
	after := r.costs(ctx)
	askedAfter := r.asked(ctx)
	each := func(cpu time.Duration) float64 { return float64(cpu.Microseconds()) / float64(max(alone.made, 1)) }
	r.report.inform("guessing: CPU of the node for each guess", "µs", each(after.node-before.node))
	r.report.inform("guessing: CPU of the load generator for each guess", "µs", each(after.own-before.own))

	beside := r.disturb(ctx, "guessing", "p99 of others meanwhile ÷ before", list, storm)
	r.report.add("guessing", "requests to etcd for them", askedAfter-askedBefore)
	r.report.note("guessing",
		fmt.Sprintf("%s: alone %s; beside others %s", r.name, alone.describe(), beside.describe()))
}

// asked returns how many requests for licenses, or for anything that a request could be
// about, the node has sent to etcd so far.
func (r *round) asked(ctx context.Context) (sum float64) {
	metrics := must(r.node.Scrape(ctx))
	for _, operation := range []string{"swap", "check", "load", "order_owner", "api_key"} {
		sum += metrics.Sum("licet_store_request_duration_seconds", "operation", operation)
	}
	return sum
}

// guess is an activation with a made-up license key and a made-up address.
type guess struct {
	text       []byte
	addressAt  int
	characters int // offset of the characters of the key that change
}

func newGuess() *guess {
	const (
		address = "203.0.000.000"
		key     = "LIC-00000-00000-00000-00000-00000"
		body    = `{"license_key":"` + key + `","device_id":"guesser"}`
	)
	g := &guess{text: fmt.Appendf(nil,
		"POST /v1/licenses/activate HTTP/1.1\r\nHost: licet\r\nContent-Type: application/json\r\n"+
			"X-Forwarded-For: %s\r\nContent-Length: %d\r\n\r\n%s", address, len(body), body)}
	g.addressAt = strings.Index(string(g.text), address) + len("203.0.")
	g.characters = strings.Index(string(g.text), key) + len("LIC-0")
	return g
}

// of returns guess number i. It is valid until the next call.
func (g *guess) of(i int) []byte {
	const alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	copy(g.text[g.addressAt:], fmt.Sprintf("%03d.%03d", 100+i/100%100, 100+i%100))
	bits, left := mix(uint64(i)), 64
	for at := g.characters; g.text[at] != '"'; at++ {
		if g.text[at] == '-' {
			continue
		}
		if left < 5 {
			bits, left = mix(bits+uint64(i)), 64
		}
		g.text[at] = alphabet[bits&31]
		bits, left = bits>>5, left-5
	}
	return g.text
}
