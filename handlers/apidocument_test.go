package handlers_test

import (
	"testing"

	"licet/docs/reference"
)

// The service serves the committed document, also to callers without an API key or with a bad one.
func TestAPIDocument(t *testing.T) {
	s := newService(t)
	for path, media := range map[string]string{
		"/openapi.yaml": "application/yaml", "/openapi.json": "application/json",
	} {
		want := reference.OpenAPI()
		if path == "/openapi.json" {
			want = reference.OpenAPIInJSON()
		}
		for _, key := range []string{"", "lk_test_nobody"} {
			got := s.send("GET", path, key, "")
			if got.status != 200 || got.header.Get("Content-Type") != media || got.body != string(want) {
				t.Errorf("%s answers %d with %s, %d bytes; want %s, %d bytes", path, got.status,
					got.header.Get("Content-Type"), len(got.body), media, len(want))
			}
			if got.header.Get("Cache-Control") != "public, max-age=3600" || got.header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s has the headers %v", path, got.header)
			}
		}
	}
}
