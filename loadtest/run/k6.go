package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"licet/internal/process"
	"licet/loadtest/rig"
)

// k6 is the program that sends the load. It has a module of its own, so the service does
// not depend on it.
type k6 struct{ binary string }

// findK6 builds k6, unless the configuration names one.
func findK6(ctx context.Context, cfg *config, out *results) (*k6, error) {
	if cfg.k6 != "" {
		return &k6{cfg.k6}, nil
	}
	path := out.path("k6")
	return &k6{path}, process.BuildTool(ctx, path, filepath.Join(cfg.root, "k6", "go.mod"), "go.k6.io/k6/v2")
}

// run runs a scenario's script. Warnings of k6 go to a file: for a killed node there is
// one for each request.
func (k *k6) run(ctx context.Context, cfg *config, s *service, out *results, control string) error {
	log, err := os.Create(out.path("k6.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	args := []string{"run", "--no-usage-report", "--log-format", "raw", "--console-output", out.path("journal.txt")}
	if !rig.OnTerminal(os.Stdout) {
		args = append(args, "--quiet") // else it shows how far it is
	}
	cmd := exec.CommandContext(ctx, k.binary, append(args, filepath.Join(cfg.root, "scenarios", cfg.name+".js"))...)
	// The API keys go into the environment, which other users can't read.
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "K6_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	cmd.Env = append(cmd.Env,
		// Plots over time, as k6 makes them, in one file. No port is opened for them.
		"K6_WEB_DASHBOARD=true", "K6_WEB_DASHBOARD_PORT=-1", "K6_WEB_DASHBOARD_PERIOD=1s",
		"K6_WEB_DASHBOARD_EXPORT="+out.path("report.html"),
		"TARGETS="+strings.Join(s.urls, ","), "API_KEY="+strings.Join(s.apiKeys, ","),
		"LICENSES="+out.path("licenses.json"), "JOURNAL=1",
		"RATE="+strconv.FormatFloat(cfg.rate, 'f', -1, 64), fmt.Sprintf("DURATION=%d", int(cfg.duration.Seconds())),
		"SLACK="+strconv.FormatFloat(cfg.slack, 'f', -1, 64), "CONTROL="+control, "OUT="+out.dir, "RUN="+s.run)
	cmd.Stdout, cmd.Stderr = os.Stdout, log
	err = cmd.Run()
	var failed *exec.ExitError
	switch {
	case errors.As(err, &failed) && failed.ExitCode() == thresholdsMissed:
		return errors.New("k6: at least one threshold was missed")
	case err != nil:
		return fmt.Errorf("k6: %w: %s", err, tail(out.path("k6.log")))
	}
	return nil
}

// thresholdsMissed is k6's exit code for a missed threshold.
const thresholdsMissed = 99

// tail returns the last 2,000 bytes of a file, for an error.
func tail(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-2000):])
}
