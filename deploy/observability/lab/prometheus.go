package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"
)

// Prometheus is one that runs, in a process of its own.
type Prometheus struct {
	URL string

	cmd   *exec.Cmd
	log   string
	ended chan struct{}
}

// startPrometheus starts one on an empty directory and waits until it is ready. It
// ends with ctx at the latest.
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
		if p.ready(ctx) {
			return p, nil
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

func (p *Prometheus) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/-/ready", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// get asks the API, and decodes the data of its answer. An expression that does not
// parse is an error.
func (p *Prometheus) get(ctx context.Context, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var answer struct {
		Status string          `json:"status"`
		Error  string          `json:"error"`
		Data   json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return fmt.Errorf("Prometheus answers %d: %.200s", response.StatusCode, body)
	}
	if answer.Status != "success" {
		return fmt.Errorf("Prometheus answers %d: %s", response.StatusCode, answer.Error)
	}
	return json.Unmarshal(answer.Data, into)
}

// Series is one of a query's result.
type Series struct {
	Labels map[string]string
	Value  float64 // NaN for a native histogram
}

// Query evaluates an expression now.
func (p *Prometheus) Query(ctx context.Context, expr string) ([]Series, error) {
	var data struct {
		Type   string          `json:"resultType"`
		Result json.RawMessage `json:"result"`
	}
	if err := p.get(ctx, "/api/v1/query", url.Values{"query": {expr}}, &data); err != nil {
		return nil, err
	}
	type sample [2]any // its time, and its value as a text
	value := func(s sample) (float64, error) {
		text, _ := s[1].(string)
		return strconv.ParseFloat(text, 64)
	}
	if data.Type == "scalar" {
		var s sample
		if err := json.Unmarshal(data.Result, &s); err != nil {
			return nil, err
		}
		v, err := value(s)
		return []Series{{Value: v}}, err
	}
	var results []struct {
		Metric map[string]string `json:"metric"`
		Value  sample            `json:"value"`
	}
	if err := json.Unmarshal(data.Result, &results); err != nil {
		return nil, err
	}
	var all []Series
	for _, r := range results {
		v, err := value(r.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", expr, err)
		}
		all = append(all, Series{r.Metric, v})
	}
	return all, nil
}

// Rule is one that Prometheus has loaded.
type Rule struct {
	Group     string
	Name      string            `json:"name"`
	Type      string            `json:"type"` // alerting or recording
	Query     string            `json:"query"`
	Health    string            `json:"health"` // ok once it was evaluated
	LastError string            `json:"lastError"`
	State     string            `json:"state"` // of an alert
	Labels    map[string]string `json:"labels"`
}

// Rules are those that Prometheus has loaded.
func (p *Prometheus) Rules(ctx context.Context) ([]Rule, error) {
	var data struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []Rule `json:"rules"`
		} `json:"groups"`
	}
	if err := p.get(ctx, "/api/v1/rules", nil, &data); err != nil {
		return nil, err
	}
	var all []Rule
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			r.Group = g.Name
			all = append(all, r)
		}
	}
	return all, nil
}
