package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"licet/loadtest/rig"
)

// runtimeFacts is what a node's runtime tells of itself.
type runtimeFacts struct {
	goroutines  float64
	allocations float64       // objects, since the start
	gc          time.Duration // CPU time of the collector, since the start
	cpu         time.Duration // CPU time of the process, since the start
}

// scrape reads a node's metrics.
func scrape(ctx context.Context, n *rig.Node) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Metrics, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("ask a node for its metrics: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return "", fmt.Errorf("read a node's metrics: %w", err)
	}
	return string(text), nil
}

// factsOf asks a node.
func factsOf(ctx context.Context, n *rig.Node) (f runtimeFacts, err error) {
	text, err := scrape(ctx, n)
	if err != nil {
		return f, err
	}
	if f.goroutines, err = metric(text, "go_goroutines"); err != nil {
		return f, err
	}
	if f.allocations, err = metric(text, "go_memstats_mallocs_total"); err != nil {
		return f, err
	}
	log, err := n.Log()
	if err != nil {
		return f, err
	}
	f.gc = gcTime(log)
	f.cpu, err = cpuTime(n.PID())
	return f, err
}

// metric finds the value of a metric without labels.
func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				return 0, fmt.Errorf("the metric %s: %w", name, err)
			}
			return number, nil
		}
	}
	return 0, fmt.Errorf("the node has no metric %s", name)
}

// sumOf adds up the series of a metric with labels; there may be none yet.
func sumOf(text, name string) (sum float64, err error) {
	for line := range strings.Lines(text) {
		rest, found := strings.CutPrefix(strings.TrimSpace(line), name)
		if !found || rest == "" || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("the metric %s: %w", name, err)
		}
		sum += value
	}
	return sum, nil
}

// gcTime sums up the time of all collections in a log of GODEBUG=gctrace=1.
// As Go's own share does, it leaves out the fourth of the five times: that of
// threads which had nothing else to do.
//
//	gc 7 @1.2s 3%: 0.1+2.6+0.01 ms clock, 0.95+0.1/0.59/2.5+0.007 ms cpu, …
func gcTime(log string) time.Duration {
	var milliseconds float64
	for line := range strings.Lines(log) {
		_, times, found := strings.Cut(line, " ms clock, ")
		if !found || !strings.HasPrefix(line, "gc ") {
			continue
		}
		times, _, _ = strings.Cut(times, " ms cpu")
		fields := strings.FieldsFunc(times, func(r rune) bool { return r == '+' || r == '/' })
		for i, field := range fields {
			if value, err := strconv.ParseFloat(field, 64); err == nil && i != 3 {
				milliseconds += value
			}
		}
	}
	return time.Duration(milliseconds * float64(time.Millisecond))
}
