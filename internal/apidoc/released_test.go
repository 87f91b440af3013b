package apidoc

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Within /v1 the API only grows: no change since the last release breaks a client. The released document is the one in
// the commit of the last tag; the check begins with the first tag.
func TestReleasedDocumentStillHolds(t *testing.T) {
	tag, err := exec.Command("git", "describe", "--tags", "--abbrev=0").Output()
	if err != nil {
		t.Skip("no release yet")
	}
	file := strings.TrimSpace(string(tag)) + ":docs/reference/openapi.yaml"
	released, err := exec.Command("git", "show", file).Output()
	if err != nil {
		t.Skipf("%s does not exist", file)
	}
	current, err := os.ReadFile(referenceFolder + "openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found, err := breaking(released, current)
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range found {
		t.Errorf("since %s: %s", file, change)
	}
}

func TestBreakingChanges(t *testing.T) {
	released := excerpt(t)
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
		"one more parameter": edit("                - name: status\n", "                - name: since\n                  in: query\n"+
			"                  schema:\n                    type: string\n                - name: status\n"),
		"one more member": edit("                refund_due:\n", "                note:\n                    type: string\n"+
			"                refund_due:\n"),
	} {
		found, err := breaking([]byte(released), []byte(current))
		if err != nil || len(found) > 0 {
			t.Errorf("%s breaks clients: %q, %v", what, found, err)
		}
	}
	for what, current := range map[string]string{
		"a removed route":  edit("    /v1/orders:\n", "    /v1/baskets:\n"),
		"a removed member": edit("                refund_due:\n", "                refund_owed:\n"),
		"another type": edit("                late:\n                    type: boolean\n",
			"                late:\n                    type: string\n"),
		"another parameter": edit("                - name: status\n", "                - name: state\n"),
		"a removed code":    edit("                \"404\":\n", "                \"499\":\n"),
	} {
		found, err := breaking([]byte(released), []byte(current))
		if err != nil || len(found) == 0 {
			t.Errorf("%s is not found: %v", what, err)
		}
	}
}
