package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/spf13/pflag"

	"licet/metrics/tracing"
)

// tracingConfig is the settings of traces.
type tracingConfig struct {
	TraceEndpoint string
	TraceRatio    float64
}

// tracesPath is where collectors take traces as a rule.
const tracesPath = "/v1/traces"

func (c *tracingConfig) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&c.TraceEndpoint, "tracing-otlp-endpoint", "", "`URL` of an OpenTelemetry collector to send traces to, by OTLP over HTTP, such as http://127.0.0.1:4318; without a path, /v1/traces there; empty: off")
	fs.Float64Var(&c.TraceRatio, "tracing-sample-ratio", 0.01, "what `share` of requests is traced if their traceparent does not say, 0 to 1")
}

func (c *tracingConfig) validate() error {
	if !(c.TraceRatio >= 0 && c.TraceRatio <= 1) { // in this form for NaN
		return badUsage("--tracing-sample-ratio is %v: it must be from 0 to 1", c.TraceRatio)
	}
	if c.TraceEndpoint == "" {
		return nil
	}
	u, err := url.Parse(c.TraceEndpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "":
		// Without the value: credentials may stand in it.
		return badUsage("--tracing-otlp-endpoint must be a URL like http://127.0.0.1:4318")
	case u.User != nil:
		return badUsage("--tracing-otlp-endpoint must hold no credentials: set OTEL_EXPORTER_OTLP_HEADERS, such as authorization=Bearer%%20…")
	}
	return nil
}

// tracesURL is the whole URL that traces are sent to. The settings must have been
// validated.
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

// trace makes what sends traces, if that is wanted. It comes before all that is
// traced, so that it ends after it and sends the last of it.
func (s *instance) trace(ctx context.Context, build build) error {
	if s.cfg.TraceEndpoint == "" {
		return nil
	}
	to, err := s.cfg.tracesURL()
	if err != nil {
		return fmt.Errorf("--tracing-otlp-endpoint: %w", err)
	}
	id, err := ulid.New(ulid.Timestamp(time.Now()), rand.Reader)
	if err != nil {
		return fmt.Errorf("make a name for this process: %w", err)
	}
	s.tracer, err = tracing.New(ctx, tracing.Config{
		Endpoint: to, Ratio: s.cfg.TraceRatio,
		Version: build.version, Instance: id.String(),
		Metrics: s.instruments, Log: s.log,
	})
	if err != nil {
		return err
	}
	s.parts.started("the traces", func(ctx context.Context) error {
		s.tracer.Close(ctx)
		return nil
	})
	s.log.Info().Str("url", to).Float64("sample_ratio", s.cfg.TraceRatio).Stringer("instance", id).Msg("tracing")
	return nil
}
