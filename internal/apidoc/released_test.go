package apidoc

import (
	"os/exec"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"licet/internal/apidoc/openapi"
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
	for _, change := range breaking(decode(t, string(released)), decode(t, committed(t))) {
		t.Errorf("since %s: %s", file, change)
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
		"a removed message": edit("    order.paid:\n", "    order.bought:\n"),
		"another parameter": edit("                - name: status\n", "                - name: state\n"),
		"a removed code":    edit("                \"404\":\n", "                \"499\":\n"),
	} {
		if found := breaking(before, decode(t, current)); len(found) == 0 {
			t.Errorf("%s is not found", what)
		}
	}
}
