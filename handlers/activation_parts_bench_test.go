package handlers

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/valyala/fasthttp"

	"licet/licensing"
	"licet/licensing/keyring"
	"licet/metrics"
	"licet/node"
	"licet/node/service"
)

// BenchmarkReadActivation decodes and checks the body of an activation.
func BenchmarkReadActivation(b *testing.B) {
	keys := keyring.NewLicenseKeys(keyring.NewKeyCheck(bytes.Repeat([]byte{7}, 32)), keyring.IDKey{})
	key := keys.Mint("EDITOR", licensing.Owner{AccountID: "acct_acme"}, [keyring.LicenseKeyEntropy]byte{1, 2, 3})
	instruments := metrics.New(prometheus.NewRegistry(), "test", "test", "test")
	engine := node.Config{LicenseKeys: keys, Clock: time.Now, Metrics: instruments}
	s := New(Config{Node: service.New(service.Config{Config: engine}), Metrics: instruments})
	body := []byte(`{"license_key":"` + keys.Text(key) + `","device_id":"` + strings.Repeat("0123456789abcdef", 4) +
		`","device_name":"the laptop in the office"}`)
	r := &request{call: call{fast: &fasthttp.RequestCtx{}}, route: &route{}}
	r.fast.Request.SetBody(body)
	of, in := compile(reflect.TypeFor[activationRequest]()), new(activationRequest)
	b.ReportAllocs()
	for b.Loop() {
		if err := s.read(r, of, in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkEncodeActivation encodes the response to an activation.
func BenchmarkEncodeActivation(b *testing.B) {
	name := "the laptop in the office"
	answer := &activation{
		LicenseKey:     "EDITOR-01234-56789-ABCDE-FGHJK-MNPQR",
		Status:         "activated",
		ProductID:      "editor",
		DeviceID:       strings.Repeat("0123456789abcdef", 4),
		DeviceName:     &name,
		MaxDevices:     3,
		CurrentDevices: 1,
		ActivatedAt:    timestamp(time.Date(2030, 1, 2, 3, 4, 5, 678_000_000, time.UTC)),
		Mode:           licensing.Live,
		AccountID:      "acct_acme",
	}
	r := &request{route: &route{}, call: call{fast: &fasthttp.RequestCtx{}}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := success(r, answer); err != nil {
			b.Fatal(err)
		}
	}
}
