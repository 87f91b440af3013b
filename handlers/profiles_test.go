package handlers_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"strings"
	"testing"

	"licet/handlers"
)

// TestProfiles: only the listener for operators serves profiles, and only if they are enabled.
func TestProfiles(t *testing.T) {
	s := newService(t)
	wanted := serve(t, handlers.NewAdmin(s.config, s.registry, true))
	for _, c := range []struct{ path, want string }{
		{"/debug/pprof/", `href='goroutine?debug=1'`},
		{"/debug/pprof/goroutine?debug=1", "goroutine profile: total"},
		{"/debug/pprof/heap?debug=1", "heap profile:"},
		{"/debug/pprof/mutex?debug=1", "cycles/second="},
		{"/debug/pprof/symbol", "num_symbols"},
		{"/debug/pprof/cmdline", "handlers.test"},
	} {
		if status, body := s.page(wanted, c.path); status != 200 || !strings.Contains(body, c.want) {
			t.Errorf("%s: status %d, no %q in %.200s", c.path, status, c.want, body)
		}
	}
	for _, path := range []string{"/debug/pprof/heap", "/debug/pprof/profile?seconds=1", "/debug/pprof/allocs"} {
		status, body := s.page(wanted, path)
		unpacked, err := gzip.NewReader(strings.NewReader(body))
		if status != 200 || err != nil {
			t.Errorf("%s: status %d, %v: %.200s", path, status, err, body)
			continue
		}
		if profile, err := io.ReadAll(unpacked); err != nil || !bytes.Contains(profile, []byte("nanoseconds")) &&
			!bytes.Contains(profile, []byte("bytes")) {
			t.Errorf("%s is no profile: %v, %d bytes", path, err, len(profile))
		}
	}
	if status, body := s.page(wanted, "/debug/pprof/none"); status != 404 {
		t.Errorf("a profile that does not exist: status %d, %s", status, body)
	}
	for name, at := range map[string]string{
		"public": serve(t, handlers.New(s.config)), "not wanted": serve(t,
			handlers.NewAdmin(s.config, s.registry, false)),
	} {
		for _, path := range []string{"/debug/pprof/", "/debug/pprof", "/debug/pprof/heap", "/debug/pprof/profile",
			"/debug/pprof/cmdline"} {
			if status, body := s.page(at, path); status != 404 {
				t.Errorf("%s: %s: status %d, %.200s", name, path, status, body)
			}
		}
	}
}

// page fetches a page from the listener for operators.
func (s *fixture) page(addr, path string) (status int, body string) {
	s.t.Helper()
	got := s.sendTo(addr, "GET", path, "", "")
	return got.status, got.body
}
