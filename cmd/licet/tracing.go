package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"licet/metrics/tracing"
	"licet/node/service"
)

// tracingConfig contains the settings of tracing.
type tracingConfig struct {
	TraceEndpoint string
	TraceRatio    float64
}

// tracesPath is the default path of OTLP over HTTP.
const tracesPath = "/v1/traces"

func (c *tracingConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.TraceEndpoint, "tracing-otlp-endpoint", "",
		"`URL` of an OpenTelemetry collector for traces, by OTLP over HTTP, such as http://127.0.0.1:4318; the "+
			"default path is /v1/traces (default: off)")
	fs.Float64Var(&c.TraceRatio, "tracing-sample-ratio", 0.01,
		"`share` of requests to trace if their traceparent does not decide, 0 to 1")
}

func (c *tracingConfig) validate() error {
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) { // in this form because of NaN
		return badUsage("--tracing-sample-ratio is %v: write a number from 0 to 1", c.TraceRatio)
	}
	if c.TraceEndpoint == "" {
		return nil
	}
	u, err := url.Parse(c.TraceEndpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" ||
		u.Fragment != "":
		// The message omits the value, which may contain credentials.
		return badUsage("--tracing-otlp-endpoint must be a URL such as http://127.0.0.1:4318")
	case u.User != nil:
		return badUsage("--tracing-otlp-endpoint must not contain credentials: set OTEL_EXPORTER_OTLP_HEADERS " +
			"instead, such as authorization=Bearer%%20…")
	}
	return nil
}

// tracesURL returns the URL to send traces to. The settings must be valid.
func (c *tracingConfig) tracesURL() (string, error) {
	u, err := url.Parse(c.TraceEndpoint)
	if err != nil {
		return "", err
	}
	if strings.Trim(u.Path, "/") == "" {
		u.Path = tracesPath
	}
	return u.String(), nil
}

// startTracing starts the tracer, unless tracing is off. The tracer starts before every traced part, so it stops after
// them and sends their last spans.
func (s *instance) startTracing(ctx context.Context, build build) error {
	if s.cfg.TraceEndpoint == "" {
		return nil
	}
	to, err := s.cfg.tracesURL()
	if err != nil {
		return fmt.Errorf("--tracing-otlp-endpoint: %w", err)
	}
	id, err := service.NewULID(time.Now(), rand.Reader, "an instance in traces")
	if err != nil {
		return err
	}
	s.tracer, err = tracing.New(ctx, tracing.Config{
		Endpoint: to, Ratio: s.cfg.TraceRatio,
		Version: build.version, Instance: id,
		Metrics: s.instruments, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.parts.started("the traces", func(ctx context.Context) error {
		s.tracer.Close(ctx)
		return nil
	})
	s.log.Info().Str("url", to).Float64("sample_ratio", s.cfg.TraceRatio).Str("instance", id).Msg("tracing")
	return nil
}
