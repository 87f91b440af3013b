package lab

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"licet/internal/process"
	"licet/loadtest/rig"
)

// Prometheus is a Prometheus server in a process of its own, with the client of its API.
type Prometheus struct {
	*process.Child
	v1.API
	URL string
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
	ports, err := rig.FreePorts(1)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", ports[0])
	p := &Prometheus{URL: "http://" + address}
	client, err := api.NewClient(api.Config{Address: p.URL})
	if err != nil {
		return nil, err
	}
	p.API = v1.NewAPI(client)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, append([]string{
		"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address,
	}, more...)...)
	if p.Child, err = process.Start(cmd, log); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for !rig.Ready(ctx, http.DefaultClient, p.URL+"/-/ready") {
		if rig.Rest(ctx, 50*time.Millisecond); ctx.Err() != nil || !p.Running() {
			p.Kill()
			return nil, fmt.Errorf("Prometheus did not start: %s", p.LogTail())
		}
	}
	return p, nil
}

// Series evaluates an expression now. A scalar is a series without labels.
func (p *Prometheus) Series(ctx context.Context, expr string) (model.Vector, error) {
	result, _, _, err := p.Query(ctx, expr, time.Time{})
	if err != nil {
		return nil, err
	}
	switch r := result.(type) {
	case *model.Scalar:
		return model.Vector{{Value: r.Value}}, nil
	case model.Vector:
		return r, nil
	}
	return nil, fmt.Errorf("%s is a %s", expr, result.Type())
}
