package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// licet is the program that is measured, with what its nodes share.
type licet struct {
	binary   string
	dir      string
	logLevel string
}

// buildLicet builds the program from the module that the working directory is
// in, unless a binary is given.
func buildLicet(ctx context.Context, dir string, cfg *setup) (*licet, error) {
	l := &licet{binary: cfg.binary, dir: dir, logLevel: cfg.nodeLogLevel}
	if l.binary == "" {
		l.binary = filepath.Join(dir, "licet")
		args := append([]string{"build", "-o", l.binary}, strings.Fields(cfg.buildFlags)...)
		if out, err := exec.CommandContext(ctx, "go", append(args, "licet/cmd/licet")...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build licet: %w: %s", err, out)
		}
	}
	if _, err := l.command(ctx, "master-key", "add", "--master-key-file", l.ring()); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *licet) ring() string { return filepath.Join(l.dir, "master.keys") }

// command runs a subcommand and gives what it prints.
func (l *licet) command(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, l.binary, args...)
	cmd.Env = plainEnvironment()
	out, err := cmd.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("licet %s: %w: %s", args[0], err, failed.Stderr)
	}
	return out, err
}

// plainEnvironment is this process's own without what would configure a node.
func plainEnvironment() []string {
	var env []string
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "LICET_") && !strings.HasPrefix(pair, "GODEBUG=") {
			env = append(env, pair)
		}
	}
	return env
}

// createKey makes an API key on a cluster's store.
func (l *licet) createKey(ctx context.Context, etcd *cluster) (string, error) {
	out, err := l.command(ctx, "keys", "create", "--account", "acct_compare", "--mode", "test", "--name", "compare",
		"--scopes", "*", "--output", "json", "--master-key-file", l.ring(), "--etcd-endpoints", strings.Join(etcd.endpoints, ","))
	if err != nil {
		return "", err
	}
	var key struct {
		Text string `json:"api_key"`
	}
	if err := json.Unmarshal(out, &key); err != nil || key.Text == "" {
		return "", fmt.Errorf("licet keys create printed no API key: %w", err)
	}
	return key.Text, nil
}

// node is a licet serve in a process of its own.
type node struct {
	*child
	address string
	metrics string // URL
}

// startNode starts a node before a cluster and waits until it is ready. The Go
// runtime's own account of its collector goes to the node's log.
func (l *licet) startNode(ctx context.Context, etcd *cluster, more ...string) (*node, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	n := &node{
		address: fmt.Sprintf("127.0.0.1:%d", ports[0]),
		metrics: fmt.Sprintf("http://127.0.0.1:%d/metrics", ports[1]),
	}
	log, err := os.CreateTemp(l.dir, "node-*.log")
	if err != nil {
		return nil, err
	}
	args := []string{"serve", "--etcd-endpoints", strings.Join(etcd.endpoints, ","),
		"--master-key-file", l.ring(), "--listen", n.address, "--metrics-listen", fmt.Sprintf("127.0.0.1:%d", ports[1]),
		"--log-level", l.logLevel}
	cmd := exec.CommandContext(ctx, l.binary, append(args, more...)...)
	cmd.Env = append(plainEnvironment(), "GODEBUG=gctrace=1")
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a node: %w", err)
	}
	n.child = newChild(cmd, log, nil)
	if err := n.await(ctx); err != nil {
		n.kill()
		return nil, fmt.Errorf("a node did not start: %w: %s", err, n.logTail())
	}
	return n, nil
}

// await waits until the node says that it is ready.
func (n *node) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ready := []byte("GET /readyz HTTP/1.1\r\nHost: licet\r\n\r\n")
	c := newConn(n.address)
	defer c.close()
	for {
		if status, _, err := c.roundTrip(ready); err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ended:
			return errors.New("it has ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// runtimeFacts is what a node's runtime tells of itself.
type runtimeFacts struct {
	goroutines  float64
	allocations float64       // objects, since the start
	gc          time.Duration // CPU time of the collector, since the start
	cpu         time.Duration // CPU time of the process, since the start
}

// scrape reads a node's metrics.
func (n *node) scrape(ctx context.Context) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.metrics, nil)
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

func (n *node) facts(ctx context.Context) (f runtimeFacts, err error) {
	text, err := n.scrape(ctx)
	if err != nil {
		return f, err
	}
	if f.goroutines, err = metric(text, "go_goroutines"); err != nil {
		return f, err
	}
	if f.allocations, err = metric(text, "go_memstats_mallocs_total"); err != nil {
		return f, err
	}
	log, err := os.ReadFile(n.log.Name())
	if err != nil {
		return f, err
	}
	f.gc = gcTime(string(log))
	f.cpu, err = cpuTime(n.pid())
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
		rest, found := strings.CutPrefix(line, name)
		if !found || rest[0] != '{' && rest[0] != ' ' {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(strings.TrimSpace(rest), ' ')+1:]), 64)
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
