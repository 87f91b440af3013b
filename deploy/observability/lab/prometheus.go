package lab

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
)

// Prometheus is a Prometheus server in a process of its own.
type Prometheus struct {
	URL string

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// startPrometheus starts a server on an empty directory and waits until it is ready. The
// server ends with ctx at the latest.
func startPrometheus(ctx context.Context, program, dir, config string, more ...string) (*Prometheus, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		return nil, err
	}
	p := &Prometheus{URL: "http://" + address, log: filepath.Join(dir, "log"), ended: make(chan struct{})}
	p.cmd = exec.CommandContext(ctx, program, append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	}, more...)...)
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start Prometheus: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		_ = log.Close()
		close(p.ended)
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if response, err := http.Get(p.URL + "/-/ready"); err == nil {
			if _ = response.Body.Close(); response.StatusCode == http.StatusOK {
				return p, nil
			}
		}
		select {
		case <-p.ended:
		default:
			if time.Now().Before(deadline) && ctx.Err() == nil {
				continue
			}
		}
		text, _ := os.ReadFile(p.log)
		p.stop()
		return nil, fmt.Errorf("Prometheus did not start: %s", text[max(0, len(text)-2000):])
	}
}

func (p *Prometheus) stop() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// Series is one series of a query's result.
type Series struct {
	Labels map[string]string
	Value  float64 // NaN for a native histogram
}

func (p *Prometheus) api() (v1.API, error) {
	client, err := api.NewClient(api.Config{Address: p.URL})
	return v1.NewAPI(client), err
}

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	prometheus, err := p.api()
	if err != nil {
		return nil, err
	}
	result, _, _, err := prometheus.Query(ctx, expr, time.Time{})
	if err != nil {
		return nil, err
	}
	var all []Series
	switch r := result.(type) {
	case *model.Scalar:
		all = append(all, Series{Value: float64(r.Value)})
	case model.Vector:
		for _, s := range r {
			one := Series{Labels: map[string]string{}, Value: float64(s.Value)}
			if s.Histogram != nil {
				one.Value = math.NaN()
			}
			for name, value := range s.Metric {
				one.Labels[string(name)] = string(value)
			}
			all = append(all, one)
		}
	default:
		return nil, fmt.Errorf("%s is a %s", expr, result.Type())
	}
	return all, nil
}

// Rule is a rule that Prometheus has loaded.
type Rule struct {
	Group, Name, Query string
	Recording          bool   // else an alert
	Health             string // ok once it was evaluated
	LastError          string
}

// Rules returns the rules that Prometheus has loaded.
func (p *Prometheus) Rules(ctx context.Context) ([]Rule, error) {
	prometheus, err := p.api()
	if err != nil {
		return nil, err
	}
	loaded, err := prometheus.Rules(ctx, nil)
	if err != nil {
		return nil, err
	}
	var all []Rule
	for _, g := range loaded.Groups {
		for _, rule := range g.Rules {
			switch r := rule.(type) {
			case v1.RecordingRule:
				all = append(all, Rule{g.Name, r.Name, r.Query, true, string(r.Health), r.LastError})
			case v1.AlertingRule:
				all = append(all, Rule{g.Name, r.Name, r.Query, false, string(r.Health), r.LastError})
			}
		}
	}
	return all, nil
}
