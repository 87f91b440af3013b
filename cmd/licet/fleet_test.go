package main

import (
	"context"
	crand "crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"licet/internal/depth"
	"licet/kv"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
)

// ringFile writes a ring that all nodes of the tests share.
func ringFile(t *testing.T) string {
	t.Helper()
	master, err := keyring.NewMasterKey("m1", [keyring.MasterKeySize]byte{1, 2, 3})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "master.keys")
	if err := os.WriteFile(path, []byte(master.Line()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// storeKey puts an API key for test mode into the store at cfg and returns the key.
func storeKey(t *testing.T, cfg kv.Config) string {
	t.Helper()
	cfg.Metrics, cfg.Log = metrics.New(prometheus.NewRegistry(), "", "", ""), zerolog.Nop()
	store, err := kv.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ring, err := readMasterRing(ringFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := store.UseMaster(t.Context(), ring.Current()); err != nil {
		t.Fatal(err)
	}
	check, err := store.KeyCheck(t.Context(), crand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	owner := licensing.Owner{AccountID: "acct_fleet", Mode: licensing.Test}
	text := check.MintAPIKey(owner, [keyring.APIKeyEntropy]byte([]byte(crand.Text())))
	err = store.PutAPIKey(t.Context(), licensing.APIKey{
		ID: licensing.NewAPIKeyID(owner, "0"), Hash: keyring.HashAPIKey(text), Owner: owner,
		Scopes: []string{"*"}, SecretVersion: 1, MasterID: ring.Current().ID, CreatedAt: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// startServe starts licet serve on a free port, waits until it says that it is
// ready, and sees to its end. API keys are not limited, as with launch.
func startServe(t *testing.T, args ...string) *process {
	t.Helper()
	return startServeAs(t, nil, args...)
}

// startServeAs adds to the process's environment.
func startServeAs(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	cmd := licetCommand(serveArgs(t, args)...)
	cmd.Env = append(cmd.Env, env...)
	return startNode(t, cmd)
}

func serveArgs(t *testing.T, args []string) []string {
	return append([]string{"serve", "--listen", "127.0.0.1:0", "--master-key-file", ringFile(t), "--drain-delay", "0s",
		"--rate-limit-account", "0", "--rate-limit-new-devices", "0"}, args...)
}

// startNode starts a licet serve, of this build or of another one, in the same way.
func startNode(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{log: new(logBuffer), cmd: cmd, ended: make(chan struct{})}
	p.client = newClient()
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		p.kill()
		p.wantNoRace(t)
		if t.Failed() {
			t.Logf("the log of licet serve:\n%s", tail(p.log.String()))
		}
	})
	waitFor(t, func() bool {
		select {
		case <-p.ended:
			t.Fatal("licet serve did not start")
		default:
		}
		p.url = logged(p.log.String(), "ready", "url")
		return p.url != ""
	})
	return p
}

// logged finds a member of the last line with a message; empty without one.
func logged(log, message, member string) (value string) {
	for line := range strings.Lines(log) {
		var entry map[string]any
		if json.Unmarshal([]byte(line), &entry) == nil && entry["message"] == message {
			value, _ = entry[member].(string)
		}
	}
	return value
}

// fleet sends each request to one of several nodes, chosen by chance, and
// remembers how they did.
type fleet struct {
	inner http.RoundTripper

	mu      sync.Mutex
	hosts   []string
	refused int           // answers 503 and 504
	lastBad time.Time     // when the last request was begun that was refused
	slowest time.Duration // of all requests
}

// newFleet returns an API that is served by several nodes.
func newFleet(key string, nodes ...*process) (*fleet, api) {
	f := &fleet{inner: newClient().Transport}
	for _, node := range nodes {
		f.hosts = append(f.hosts, strings.TrimPrefix(node.url, "http://"))
	}
	client := newClient()
	client.Transport = f
	return f, api{url: "http://fleet", key: key, client: client}
}

// RoundTrip implements http.RoundTripper.
func (f *fleet) RoundTrip(request *http.Request) (*http.Response, error) {
	f.mu.Lock()
	host := f.hosts[rand.IntN(len(f.hosts))]
	f.mu.Unlock()
	request = request.Clone(request.Context())
	request.URL = &url.URL{Scheme: "http", Host: host, Opaque: request.URL.Opaque, Path: request.URL.Path,
		RawPath: request.URL.RawPath, RawQuery: request.URL.RawQuery}
	request.Host = ""
	began := time.Now()
	response, err := f.inner.RoundTrip(request)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.slowest = max(f.slowest, time.Since(began))
	if err == nil &&
		(response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusGatewayTimeout) {
		f.refused++
		if began.After(f.lastBad) {
			f.lastBad = began
		}
	}
	return response, err
}

// CloseIdleConnections passes on what a client is asked for.
func (f *fleet) CloseIdleConnections() { f.inner.(*http.Transport).CloseIdleConnections() }

// forget begins the memory anew.
func (f *fleet) forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refused, f.lastBad, f.slowest = 0, time.Time{}, 0
}

func (f *fleet) report() (refused int, lastBad time.Time, slowest time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused, f.lastBad, f.slowest
}

// refusal reports whether a response says that nothing was done, or that the outcome is unknown: 50300, 50301, 50400,
// or the same on the pay page.
func refusal(err error) bool {
	var odd *oddAnswer
	return errors.Is(err, errDraining) ||
		errors.As(err, &odd) && (odd.status == http.StatusServiceUnavailable || odd.status == http.StatusGatewayTimeout)
}

// pause is how long a worker rests between two walks, so that tests that run at once leave each other some time.
var pause = depth.Of(500*time.Millisecond, 0)

// weather does the main job until ctx ends, whatever is refused meanwhile, and returns any other error.
func (l *ledger) weather(ctx context.Context, a api, name, sharedKey string) error {
	for i := 0; ctx.Err() == nil; i++ {
		err := l.walk(ctx, a, fmt.Sprintf("%s%d", name, i), sharedKey)
		if err != nil && !refusal(err) && ctx.Err() == nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}
