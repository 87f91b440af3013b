package apidoc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"licet/internal/apidoc/openapi"
)

// Within /v1 the API only grows: no change since the last release breaks a client. The check begins with the first tag.
func TestReleasedDocumentStillHolds(t *testing.T) {
	file, document, err := released(".")
	switch {
	case errors.Is(err, errNoRelease):
		t.Skip(err)
	case err != nil && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	for _, change := range breaking(decode(t, document), decode(t, committed(t))) {
		t.Errorf("since %s: %s", file, change)
	}
}

// errNoRelease means that a repository has no tag.
var errNoRelease = errors.New("no release yet")

// released returns the released document of the repository around a folder, and its name in git: the document in the
// commit of the last tag.
func released(folder string) (file, document string, err error) {
	git := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = folder
		out, failed := cmd.Output()
		if failed != nil && err == nil {
			err = fmt.Errorf("git %s: %w", strings.Join(args, " "), failed)
		}
		return strings.TrimSpace(string(out))
	}
	if git("tag") == "" && err == nil {
		return "", "", errNoRelease
	}
	file = git("describe", "--tags", "--abbrev=0") + ":docs/reference/openapi.yaml"
	document = git("show", file)
	return file, document, err
}

// TestReleased: a repository without a tag has no release. With a tag whose document can't be read, the check of CI
// must not pass unseen.
func TestReleased(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	folder := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", folder, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "--quiet")
	git("commit", "--quiet", "--allow-empty", "--message", "first")
	if _, _, err := released(folder); !errors.Is(err, errNoRelease) {
		t.Errorf("without a tag: %v", err)
	}
	git("tag", "v1")
	if _, _, err := released(folder); err == nil || errors.Is(err, errNoRelease) {
		t.Errorf("with a tag that lacks the document: %v", err)
	}
	path := filepath.Join(folder, "docs/reference/openapi.yaml")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("openapi: 3\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	git("add", ".")
	git("commit", "--quiet", "--message", "second")
	git("tag", "v2")
	file, text, err := released(folder)
	if file != "v2:docs/reference/openapi.yaml" || text != "openapi: 3" || err != nil {
		t.Errorf("%s: %q, %v", file, text, err)
	}
	git("checkout", "--quiet", "--orphan", "other")
	git("commit", "--quiet", "--message", "without the tags")
	if _, _, err := released(folder); err == nil || errors.Is(err, errNoRelease) {
		t.Errorf("without the commits of the tags: %v", err)
	}
}

func decode(t *testing.T, text string) *openapi.Document {
	t.Helper()
	document := new(openapi.Document)
	if err := yaml.Unmarshal([]byte(text), document); err != nil {
		t.Fatal(err)
	}
	return document
}

func TestBreakingChanges(t *testing.T) {
	released := committed(t)
	before := decode(t, released)
	edit := func(old, changed string) string {
		edited := strings.Replace(released, old, changed, 1)
		if edited == released {
			t.Fatalf("the document lacks %q", old)
		}
		return edited
	}
	for what, current := range map[string]string{
		"the same document": released,
		"one more route": edit("    /v1/orders:\n", "    /v1/baskets:\n        get:\n            responses:\n"+
			"                \"200\":\n                    description: OK\n    /v1/orders:\n"),
		"one more parameter": edit("                - name: status\n",
			"                - name: since\n                  in: query\n"+
				"                  schema:\n                    type: string\n                - name: status\n"),
		"one more word": edit("                        - not_activated\n",
			"                        - not_activated\n                        - lost\n"),
		"another text": edit("                    description: OK\n", "                    description: fine\n"),
		"one more member of requests": edit(
			"        ActivationRequest:\n            type: object\n            properties:\n",
			"        ActivationRequest:\n            type: object\n            properties:\n"+
				"                note:\n                    type: string\n"),
		"one more member that responses always have": edit("                - refund_due\n",
			"                - refund_due\n                - note\n"),
		"one more member": edit("                refund_due:\n",
			"                note:\n                    type: string\n"+
				"                refund_due:\n"),
	} {
		if found := breaking(before, decode(t, current)); len(found) > 0 {
			t.Errorf("%s breaks clients: %q", what, found)
		}
	}
	for what, current := range map[string]string{
		"a removed route":  edit("    /v1/orders:\n", "    /v1/baskets:\n"),
		"a removed member": edit("                refund_due:\n", "                refund_owed:\n"),
		"another type": edit("                late:\n                    type: boolean\n",
			"                late:\n                    type: string\n"),
		"another limit": edit("                    maxLength: 64\n", "                    maxLength: 63\n"),
		"one word less": edit("                        - not_activated\n", ""),
		"one more member that requests need": edit("                - license_key\n",
			"                - license_key\n                - device_name\n"),
		"one member that responses may lack": edit("                - refund_due\n", ""),
		"one more parameter that requests need": edit("                - name: status\n",
			"                - name: since\n                  in: query\n                  required: true\n"+
				"                  schema:\n                    type: string\n                - name: status\n"),
		"a header that responses may lack": edit("'#/components/headers/X-Request-Id'",
			"'#/components/headers/optional-RateLimit'"),
		"a removed header": edit("                        RateLimit:\n", "                        Rate:\n"),
		"other scopes": edit("                - ApiKey:\n                    - licenses",
			"                - ApiKey:\n                    - orders"),
		"a removed message":        edit("    order.paid:\n", "    order.bought:\n"),
		"another parameter":        edit("                - name: status\n", "                - name: state\n"),
		"another operationId":      edit(" operationId: activate\n", " operationId: activateLicense\n"),
		"another limit of bodies":  edit("x-max-bytes: 65536\n", "x-max-bytes: 65535\n"),
		"another type of a header": edit("                const: nosniff\n", "                const: sniff\n"),
		"another name of a schema": strings.ReplaceAll(released, "ActivationRequest", "Activating"),
		"a removed code":           edit("                \"404\":\n", "                \"499\":\n"),
	} {
		if found := breaking(before, decode(t, current)); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}
