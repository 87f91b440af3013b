package migratetest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// TestFakesKeepToTheSchemas compares the responses of each fake with what the service publishes; see
// testdata/responses.yaml.
func TestFakesKeepToTheSchemas(t *testing.T) {
	text, err := os.ReadFile("testdata/responses.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var document map[string]any
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	schemas := jsonschema.NewCompiler()
	schemas.AssertFormat()
	if err := schemas.AddResource("responses.json", resource); err != nil {
		t.Fatal(err)
	}

	const first, second = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
	past := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, c := range []struct {
		service, path, schema string
		licenses              []License
	}{
		{"polar", "/license-keys/?limit=1&page=1", "polar-keys", []License{{ID: first, Key: "K", Product: second,
			MaxDevices: 3, Expires: past}, {ID: second, Key: "L", Product: second}}},
		{"polar", "/license-keys/?limit=100&page=1", "polar-keys", []License{{ID: first, Key: "K", Product: second,
			Blocked: true}}},
		{"polar", "/license-keys/" + first, "polar-key-with-activations", []License{{ID: first, Key: "K",
			Product: second, MaxDevices: 3, Devices: []string{second}}}},
		{"keygen", "/licenses?page[size]=1&page[number]=2", "keygen-licenses", []License{{ID: "a", Key: "K"}, {ID: "b",
			Key: "L", MaxDevices: 3, Expires: past}, {ID: "c", Key: "M"}}},
		{"keygen", "/licenses?page[size]=100&page[number]=1", "keygen-licenses", []License{{ID: "a", Key: "K",
			Blocked: true}}},
		{"keygen", "/machines?page[size]=100&page[number]=1", "keygen-machines", []License{{ID: "a", Key: "K",
			Devices: []string{"d", "e"}}}},
		{"keygen", "/machines?page[size]=100&page[number]=1", "keygen-machines", []License{{ID: "a", Key: "K"}}},
		{"lemonsqueezy", "/license-keys?include=license-key-instances&page[size]=100&page[number]=1",
			"lemonsqueezy-keys", []License{{ID: "1", Key: "K", Product: "2", MaxDevices: 3, Expires: past,
				Devices: []string{"d", "e"}}, {ID: "2", Key: "L", Product: "2", Blocked: true}, {ID: "3", Key: "M"}}},
		{"lemonsqueezy", "/license-key-instances?filter[license_key_id]=1&page[size]=100&page[number]=1",
			"lemonsqueezy-instances", []License{{ID: "1", Key: "K", Devices: []string{"d", "e"}}}},
		{"gumroad", "/sales", "gumroad-sales", append(make([]License, 10), License{ID: "k=="})},
		{"gumroad", "/sales", "gumroad-sales", []License{{ID: "a==", Key: "K", Product: "p==", Refunded: true},
			{ID: "b==", Key: "L", Product: "p==", Blocked: true}, {ID: "c==", Product: "p=="}}},
	} {
		t.Run(c.schema, func(t *testing.T) {
			schema, err := schemas.Compile("responses.json#/$defs/" + c.schema)
			if err != nil {
				t.Fatal(err)
			}
			fake, stop := New(c.service, c.licenses)
			defer stop()
			body := get(t, fake.URL+c.path)
			response, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
			if err == nil {
				err = schema.Validate(response)
			}
			if err != nil {
				t.Errorf("%s answers %s: %v", c.path, body, err)
			}
		})
	}
}

// get returns the body of a successful response.
func get(t *testing.T, url string) []byte {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+Token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatal(response.Status, err)
	}
	return body
}
