package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestProfilesOfAProcess: off as a rule, never where the public is served, and not
// without a listener for operators.
func TestProfilesOfAProcess(t *testing.T) {
	t.Parallel()
	for _, wanted := range []bool{false, true} {
		args := []string{"--metrics-listen", "127.0.0.1:0"}
		status := http.StatusNotFound
		if wanted {
			args, status = append(args, "--pprof"), http.StatusOK
		}
		p := startProcess(t, t.TempDir(), args...)
		admin := strings.TrimSuffix(logged(p.log.String(), "metrics", "url"), "/metrics")
		for _, path := range []string{"/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/goroutine?debug=2"} {
			if got := p.get(t, admin+path); got.status != status {
				t.Errorf("--pprof %v: %s answers %d for operators, want %d", wanted, path, got.status, status)
			}
			if got := p.get(t, p.url+path); got.status != http.StatusNotFound {
				t.Errorf("--pprof %v: %s answers %d for the public", wanted, path, got.status)
			}
		}
	}
	r := runLicet(t, "dev", "--data-dir", t.TempDir(), "--pprof")
	if r.code != exitUsage || !strings.Contains(r.stderr, "--pprof needs --metrics-listen") {
		t.Errorf("without a listener: exit code %d, %s", r.code, r.stderr)
	}
}
