package client_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"licet/internal/depth"
)

// declared is what the code of a page names besides the parameters of its function.
var declared = map[string]string{
	"changing-devices.md": `installation, diskSerial, boardSerial := "", "", ""`,
	"events.md":           `latest := ""`,
	"expiry.md":           "warn := func(string) {}",
	"webhooks.md":         "var shop interface{ Take(context.Context, *webhook.Event) error }",
}

// TestPagesCompile compiles the Go code of README.md and of the guides, each in a function. A page may leave variables
// unused. Other tests run the code of docs/guides/signing.md and of the tutorials.
func TestPagesCompile(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	args := append([]string{"build", "-gcflags=-e", "-o", os.DevNull}, depth.BuildFlags()...) // -e: all errors
	flags := len(args)
	for i, page := range append(pages, "../README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		_, code, found := strings.Cut(string(text), "\n```go\n")
		if !found || filepath.Base(page) == "signing.md" {
			continue
		}
		code, _, _ = strings.Cut(code, "\n```\n")
		program := "package pages\n\nimport (\n\t\"context\"\n\t\"licet/client\"\n"
		for _, imported := range []string{"errors", "net/http", "os", "time", "licet/client/webhook"} {
			if strings.Contains(code, filepath.Base(imported)+".") {
				program += fmt.Sprintf("\t%q\n", imported)
			}
		}
		program += fmt.Sprintf(")\n\nfunc page%d(ctx context.Context, api, shop *client.Client, "+
			"key, device, account string) error {\n{\n%s\n//line %s:1\n%s\n}\nreturn nil\n}\n",
			i, declared[filepath.Base(page)], filepath.Base(page), code)
		file := filepath.Join(dir, fmt.Sprintf("page%d.go", i))
		if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, file)
	}
	if last := args[len(args)-1]; len(args) < flags+8 || filepath.Base(last) != fmt.Sprintf("page%d.go", len(pages)) {
		t.Errorf("the pages with Go code are %q", args)
	}
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.HasPrefix(line, "# ") && !strings.Contains(line, "declared and not used: ") {
			t.Errorf("%v: %s", err, line)
		}
	}
}
