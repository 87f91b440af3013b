package check

import (
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
)

// quietLevel is the log level of members of etcd. etcd logs the text of a slow or a failed request at level warn, and
// this text has ids of licenses and accounts.
const quietLevel = "error"

// TestMembersLogErrorsOnly checks the log level of etcd in each overlay, in the chart, in the compose file and on the
// page for operators.
func TestMembersLogErrorsOnly(t *testing.T) {
	check := func(where, level string) {
		t.Helper()
		if level != quietLevel {
			t.Errorf("%s: members log at level %q, want %q", where, level, quietLevel)
		}
	}
	for _, overlay := range overlays {
		set := render(t, overlay)
		etcd := find(t, set, "StatefulSet/etcd").template.Spec.Containers[0]
		check(overlay, environment(t, set, etcd)["ETCD_LOG_LEVEL"])
	}
	set := chart(t, "")
	etcd := find(t, set, "StatefulSet/etcd").template.Spec.Containers[0]
	check("the chart", environment(t, set, etcd)["ETCD_LOG_LEVEL"])
	project, err := composed(t, composeFile)
	if err != nil {
		t.Fatal(err)
	}
	for _, member := range []string{"etcd-1", "etcd-2", "etcd-3"} {
		if level := project.Services[member].Environment["ETCD_LOG_LEVEL"]; level == nil {
			t.Errorf("%s has no log level", member)
		} else {
			check(member, *level)
		}
	}
	_, section, _ := strings.Cut(readPage(t, "docs/guides/operations.md"), "\n## Set up etcd\n")
	section, _, _ = strings.Cut(section, "\n## ")
	levels := regexp.MustCompile(`--log-level (\w+)`).FindAllStringSubmatch(section, -1)
	if len(levels) == 0 {
		t.Error("operations.md starts members without a log level")
	}
	for _, level := range levels {
		check("operations.md", level[1])
	}
}

// TestMemberLogHasNoKeys starts members as the development overlay does, but without certificates, and has them take
// every request for slow and refuse one. Their log names no key of a request. At level warn the log does.
func TestMemberLogHasNoKeys(t *testing.T) {
	const licenseKey = "AAAAA-BBBBB-CCCCC-DDDDD-EEEEE"
	set := render(t, "dev")
	for level, logged := range map[string]bool{quietLevel: false, "warn": true} {
		t.Run(level, func(t *testing.T) {
			env := environment(t, set, find(t, set, "StatefulSet/etcd").template.Spec.Containers[0])
			for name, value := range env {
				env[name] = strings.ReplaceAll(value, "https://", "http://")
				if strings.HasSuffix(name, "_FILE") || strings.HasSuffix(name, "_CERT_AUTH") ||
					name == "ETCD_TLS_MIN_VERSION" {
					delete(env, name)
				}
			}
			env["ETCD_DATA_DIR"] = t.TempDir()
			env["ETCD_LOG_LEVEL"] = level
			env["ETCD_WARNING_APPLY_DURATION"], env["ETCD_WARNING_UNARY_REQUEST_DURATION"] = "1ns", "1ns"
			env["ETCD_ENABLE_GRPC_GATEWAY"] = "true" // this test has no client of etcd
			address, _, log := startMember(t, env)
			send := func(route, body string) (int, string) {
				t.Helper()
				response, err := http.Post("http://"+address+route, "application/json", strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				text, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				return response.StatusCode, string(text)
			}
			// The shape of an activation: compare the license, then write the license and a device.
			key := base64.StdEncoding.EncodeToString([]byte("s/l/" + licenseKey))
			put := fmt.Sprintf(`{"request_put": {"key": %q, "value": "eA=="}}`, key)
			if status, text := send("/v3/kv/txn", fmt.Sprintf(
				`{"compare": [{"key": %q, "target": "MOD", "mod_revision": "0"}], "success": [%s]}`, key, put),
			); status != http.StatusOK || !strings.Contains(text, `"succeeded":true`) {
				t.Fatalf("the transaction returned %d: %s", status, text)
			}
			if status, text := send("/v3/kv/range", fmt.Sprintf(`{"key": %q}`, key)); status != http.StatusOK ||
				!strings.Contains(text, "eA==") {
				t.Fatalf("the range returned %d: %s", status, text)
			}
			if status, text := send("/v3/kv/put", fmt.Sprintf(`{"key": %q, "lease": "77"}`, key)); status == http.StatusOK {
				t.Fatalf("a put with an unknown lease returned %s", text)
			}
			text, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), licenseKey) != logged {
				t.Errorf("the log names the key of a request: %v, want %v\n%s", !logged, logged, text)
			}
			if strings.Contains(string(text), "took too long") != logged {
				t.Errorf("the log has slow requests: %v, want %v", !logged, logged)
			}
		})
	}
}
