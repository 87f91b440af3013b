package handlers_test

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/handlers"
	"licet/internal/nodetest"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/metrics/tracing"
	"licet/node"
	"licet/node/clocks"
	"licet/node/service"
)

// benchServer returns a server as in production, which logs warnings only and uses the real clock. Its
// store has one license. The returned request binds a device, so that all requests but the first only
// read the license.
func benchServer(b testing.TB, tracer *tracing.Tracer) (server *handlers.Server, request string) {
	b.Helper()
	db := newMemStore()
	key := serviceKeys.Mint("EDITOR", ownerAcme, [keyring.LicenseKeyEntropy]byte{1, 2, 3})
	db.records[licensing.LicenseRef(key)] = &memRecord{
		revision: 1,
		record: licensing.Record{License: &licensing.License{
			Key:        key,
			Owner:      licensing.Owner{AccountID: "acct_acme", Mode: licensing.Live},
			ProductID:  "editor",
			MaxDevices: 3,
			CreatedAt:  time.Now().Add(-time.Hour),
		}},
		devices: make(map[string]licensing.Device),
	}
	log := zerolog.New(io.Discard).Level(zerolog.WarnLevel)
	instruments := metrics.New(prometheus.NewRegistry(), "test", "test", "test")
	comparison := nodetest.NewComparison(clocks.System())
	nodetest.CompareWith(comparison)
	server = handlers.New(handlers.Config{
		Node: service.New(service.Config{Config: node.Config{Records: db, Queries: db, LicenseKeys: serviceKeys,
			Clock: time.Now, Clocks: comparison,
			Metrics: instruments, Log: log, Tracer: tracer}, Ring: testRing(b),
			Keys: db, Sweeps: db, Events: db, Entropy: rand.Reader}),
		Metrics:   instruments,
		Log:       log,
		Tracer:    tracer,
		PublicURL: publicURL,
	})
	body := fmt.Sprintf(`{"license_key":"%s","device_id":"%s","device_name":"the laptop in the office"}`, serviceKeys.Text(key),
		strings.Repeat("0123456789abcdef", 4))
	return server, fmt.Sprintf("POST /v1/licenses/activate HTTP/1.1\r\nHost: licet.example.com\r\n"+
		"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// BenchmarkActivation is one request from its parsed head to its answer. With a receipt, the request makes one Ed25519
// signature, see BenchmarkSignature, and the document around the signature.
func BenchmarkActivation(b *testing.B) {
	for name, members := range map[string]string{"plain": "", "receipt": `,"receipt":true`} {
		b.Run(name, func(b *testing.B) {
			serve := benchActivation(b, members)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}

// BenchmarkSignature is one Ed25519 signature of a text as long as the signed part of a receipt.
func BenchmarkSignature(b *testing.B) {
	sign := signing()
	for b.Loop() {
		sign()
	}
}

// BenchmarkReceipt reports how many Ed25519 signatures a receipt costs: how much longer an activation with a receipt
// takes than one without, divided by the time of a signature. The three alternate, and each counts by its median, so
// that what else the machine does changes little.
func BenchmarkReceipt(b *testing.B) {
	plain := benchActivation(b, "")
	asking := benchActivation(b, `,"receipt":true`)
	sign := signing()
	var times [3][]float64
	for b.Loop() {
		for i, work := range []func(){plain, asking, sign} {
			began := time.Now()
			work()
			times[i] = append(times[i], float64(time.Since(began)))
		}
	}
	var medians [3]float64
	for i, list := range times {
		slices.Sort(list)
		medians[i] = list[len(list)/2]
	}
	b.ReportMetric((medians[1]-medians[0])/medians[2], "signatures")
}

// benchActivation returns a request with more members, from its parsed head to its answer.
func benchActivation(b *testing.B, members string) func() {
	server, request := benchServer(b, nil)
	ctx := parsed(b, request)
	ctx.Request.SetBodyString(strings.TrimSuffix(string(ctx.Request.Body()), "}") + members + "}")
	return func() {
		ctx.Response.Reset()
		server.ServeRequest(ctx)
		if ctx.Response.StatusCode() != fasthttp.StatusOK {
			b.Fatalf("%s", &ctx.Response)
		}
	}
}

// signing returns one Ed25519 signature of a text as long as the signed part of a receipt.
func signing() func() {
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	text := make([]byte, 900)
	return func() { ed25519.Sign(key, text) }
}

// parsed returns a request with a parsed head.
func parsed(b testing.TB, request string) *fasthttp.RequestCtx {
	b.Helper()
	var ctx fasthttp.RequestCtx
	ctx.Init2(&echo{}, nil, false)
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	if err := ctx.Request.Header.Read(bufio.NewReader(strings.NewReader(head + "\r\n\r\n"))); err != nil {
		b.Fatal(err)
	}
	ctx.Request.SetBodyString(body)
	return &ctx
}

// BenchmarkActivationConn is one request from the bytes of a connection to the bytes of its response,
// without system calls.
func BenchmarkActivationConn(b *testing.B) {
	server, request := benchServer(b, nil)
	c := &echo{request: []byte(request)}
	b.ReportAllocs()
	b.ResetTimer()
	c.left = b.N
	if err := server.ServeConn(c); err != nil && !errors.Is(err, io.EOF) {
		b.Fatal(err)
	}
	b.StopTimer()
	if c.writes != b.N || !bytes.HasPrefix(c.last, []byte("HTTP/1.1 200 OK\r\n")) {
		b.Fatalf("%d answers of %d, the last one %q", c.writes, b.N, c.last)
	}
}

// echo is a connection that repeats one request.
type echo struct {
	request []byte
	left    int // requests still to come
	peer    net.TCPAddr

	writes int
	last   []byte
}

func (c *echo) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	c.left--
	return copy(p, c.request), nil
}

func (c *echo) Write(p []byte) (int, error) {
	c.writes++
	c.last = append(c.last[:0], p...)
	return len(p), nil
}

func (*echo) Close() error                     { return nil }
func (*echo) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (c *echo) RemoteAddr() net.Addr           { return &c.peer }
func (*echo) SetDeadline(time.Time) error      { return nil }
func (*echo) SetReadDeadline(time.Time) error  { return nil }
func (*echo) SetWriteDeadline(time.Time) error { return nil }
