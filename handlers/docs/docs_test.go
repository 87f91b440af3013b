package docs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The viewer is the file that npm has under this version; its licenses stand beside it. For another version, see
// docs/decisions/0029-api-reference-in-the-browser.md.
func TestViewer(t *testing.T) {
	const want = "6bb3f4f29b0d740f1fc0970cd4245e01d2c1346df5a26ecd20a2f7a5dda5f837"
	sum := sha256.Sum256(Viewer())
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Errorf("the viewer has the SHA-256 %s, want %s", got, want)
	}
	if !bytes.HasPrefix(Viewer(), []byte("/*! OpenAPI Explorer "+ViewerVersion+" ")) {
		t.Errorf("the viewer is not of version %s", ViewerVersion)
	}
	licenses, err := os.ReadFile("viewer/LICENSES.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"openapi-explorer " + ViewerVersion, "Apache License", "Permission is hereby granted",
		"Redistributions in binary form", "lit 2.8.0", "prismjs 1.30.0", "marked 4.3.0"} {
		if !bytes.Contains(licenses, []byte(part)) {
			t.Errorf("LICENSES.txt lacks %q", part)
		}
	}
}

var (
	inline = regexp.MustCompile(`(?s)<(script|style)>(.*?)</(?:script|style)>`)
	loaded = regexp.MustCompile(`(?:src|<link[^>]* href)="([^"]*)"`)
)

// The policy of each page allows exactly the scripts and styles in the page, and the page loads nothing from elsewhere.
func TestPolicies(t *testing.T) {
	r := New("/licenses")
	home, err := r.Home(Home{URL: "http://127.0.0.1:8080", Steps: []Step{{"Order <now>", "curl '<a&b>'"}}})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(home.HTML), "curl &#39;&lt;a&amp;b&gt;&#39;") {
		t.Errorf("the page does not escape the command:\n%s", home.HTML)
	}
	errors, err := r.Errors()
	if err != nil {
		t.Fatal(err)
	}
	reference, err := r.Reference()
	if err != nil {
		t.Fatal(err)
	}
	for name, page := range map[string]Page{"home": home, "errors": errors, "reference": reference} {
		parts := inline.FindAllSubmatch(page.HTML, -1)
		if len(parts) == 0 {
			t.Errorf("%s has no style", name)
		}
		for _, part := range parts {
			source := hashOf(string(part[2]))
			if string(part[1]) == "style" && name == "reference" {
				source = "style-src 'unsafe-inline'" // the viewer writes style elements
			}
			if !strings.Contains(page.Policy, source) || bytes.Contains(part[2], []byte("\r")) {
				t.Errorf("%s: the policy %s does not allow %s", name, page.Policy, part[0])
			}
		}
		for _, address := range loaded.FindAllSubmatch(page.HTML, -1) {
			if !strings.HasPrefix(string(address[1]), "/licenses/") {
				t.Errorf("%s loads %s", name, address[1])
			}
		}
		if !strings.Contains(page.Policy, "default-src 'none'; ") || strings.Contains(page.Policy, "eval") {
			t.Errorf("%s has the policy %s", name, page.Policy)
		}
	}
	if !strings.Contains(errors.Policy, "script-src 'none'") {
		t.Errorf("the page of errors has the policy %s", errors.Policy)
	}
}

// Meanings are sentences with code in HTML.
func TestMeaningsInHTML(t *testing.T) {
	c := Code{Meaning: "the `a<b` is not right. `message` says why"}
	const want = "The <code>a&lt;b</code> is not right. <code>message</code> says why."
	if got := c.About(); string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := placeInReference("DELETE /v1/keys/{key_id}"), "?route=delete-/v1/keys/-key_id-"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
