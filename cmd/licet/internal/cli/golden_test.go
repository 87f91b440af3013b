package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"licet/client"
)

// exchange is a request of the API's golden files with its answer.
type exchange struct {
	name   string
	route  string // method and path
	status int
	body   string
	data   json.RawMessage
}

var exchangeText = regexp.MustCompile(`(?s)^> ([A-Z]+ [^\n]*)\n.*\n< (\d{3}) [^\n]*\n.*<\n(.*)$`)

// exchanges reads the golden files of the API: what a service answers, word for
// word.
func exchanges(t *testing.T) []exchange {
	t.Helper()
	paths, err := filepath.Glob("../../../../handlers/testdata/golden/*.txt")
	if err != nil || len(paths) < 50 {
		t.Fatalf("%d golden files of the API, %v", len(paths), err)
	}
	var all []exchange
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		parts := exchangeText.FindStringSubmatch(string(text))
		if parts == nil {
			continue // of another form: probes, pages
		}
		e := exchange{name: strings.TrimSuffix(filepath.Base(path), ".txt"), route: parts[1],
			body: strings.TrimSpace(parts[3])}
		e.status, _ = strconv.Atoi(parts[2])
		var envelope struct {
			Data json.RawMessage `json:"data"`
		}
		if json.Unmarshal([]byte(e.body), &envelope) == nil {
			e.data = envelope.Data
			all = append(all, e)
		}
	}
	return all
}

// commandOf finds the command of a request, and arguments for it.
func commandOf(root *cobra.Command, route string) (args []string) {
	var found *cobra.Command
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if pattern := cmd.Annotations[routeNote]; pattern != "" &&
			(found == nil || strings.Contains(found.Annotations[routeNote], "{")) {
			quoted := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(pattern), "[^/?]+")
			if regexp.MustCompile("^" + quoted + `(\?|$)`).MatchString(route) {
				found = cmd
			}
		}
		for _, child := range cmd.Commands() {
			walk(child)
		}
	}
	walk(root)
	if found == nil {
		return nil
	}
	args = strings.Fields(found.CommandPath())[1:]
	for _, name := range strings.Fields(found.Use)[1:] {
		args = append(args, map[string]string{
			"LICENSE_KEY": "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1", "LICENSE_KEY...": "LIC-0PTYW-9JYJV-7GEFV-QNZG1-G5CB1",
			"ORDER_NO": "ord_VQ01Q3G996SE003GW58W4CN32E1Z", "PRODUCT_ID": "editor",
			"EVENT_ID": "evt_0000000000000000001", "DEVICE_ID": "laptop-1",
			"ENDPOINT_ID": exampleEndpoint, "KEY_ID": exampleKey, "ENDPOINT_URL": "https://shop.example.com/licet",
			"RELEASE_FILE": "testdata/release.txt", // the answer does not depend on the content
		}[name])
	}
	switch found.Parent().Name() + " " + found.Name() {
	case "orders create":
		args = append(args, "--product-id", "editor", "--amount", "1", "--currency", "USD")
	case "orders record-payment":
		args = append(args, "--reference", "INV-2031-0042")
	case "orders change-subscription":
		args = append(args, "--product-id", "team", "--amount", "3000")
	case "reports sales":
		args = append(args, "--from", "2030-01-01", "--to", "2031-01-01")
	case "products rollout":
		args = append(args, "--terms", "max_devices")
	case "keys create":
		args = append(args, "--name", "shop", "--scopes", "orders")
	case "licenses grant":
		args = append(args, "--product-id", "editor")
	case "licenses renew":
		args = append(args, "--extend", "P1M")
	case "licet redact":
		args = append(args, "--buyer-email", "anna@example.com")
	case "licenses update":
		args = append(args, "--max-devices", "1")
	case "account update":
		args = append(args, "--external-keys", "compact")
	case "webhooks update":
		args = append(args, "--enabled=false")
	case "webhooks replay":
		args = append(args, "--dead")
	}
	return args
}

// TestGoldenCommands runs the command of each request of the API's golden files
// against its answer, and compares all that is printed. So it shows whatever a
// service may answer.
func TestGoldenCommands(t *testing.T) {
	t.Parallel()
	var answer exchange
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(answer.status)
		_, _ = w.Write([]byte(answer.body))
	}))
	defer server.Close()
	u := newStranger(t)
	u.setup.retryFor = time.Nanosecond
	u.env["LICET_URL"], u.env["LICET_API_KEY"] = server.URL, "lk_test_golden"
	var printed strings.Builder
	for _, answer = range exchanges(t) {
		args := commandOf(u.root(), answer.route)
		if args == nil {
			continue
		}
		got := u.run(args...)
		fmt.Fprintf(&printed, "== %s: licet %s\n%s%s", answer.name, strings.Join(args, " "), got.stdout, got.stderr)
		if got.err != nil {
			fmt.Fprintf(&printed, "licet: %v\n", got.err)
		}
		printed.WriteString("\n")
		if answer.status >= 300 || errors.Is(got.err, client.ErrSecretLost) {
			continue
		}
		// As JSON it is what came, to the byte.
		if as := u.run(append(args, "--output", "json")...); as.stdout != string(answer.data)+"\n" {
			t.Errorf("%s is printed as %s", answer.name, as.stdout)
		}
	}
	wantGolden(t, "commands.txt", strings.ReplaceAll(printed.String(), server.URL, "http://licet.example"))
}

// TestGoldenObject shows values of every kind.
func TestGoldenObject(t *testing.T) {
	t.Parallel()
	text, _, err := objectText(json.RawMessage(`{"name":"a\nb\u0007\u202ec","amount":12345,"currency":"KWD","count":123456789012345678901,"max_devices":0,
		"metadata":{"a":[1,2]},"empty":{},"none":null,"words":["a","b"],"no_words":[],"numbers":[1,2],"flag":true,"at":"2030-01-02T03:04:05.678Z",
		"no_time":"2030-01-02","blank":"","devices":[{"id":"ü","n":1},{"id":"bb","n":22}],"next_cursor":null,"devices_next_cursor":"x"}`), look{})
	if err != nil {
		t.Fatal(err)
	}
	wantGolden(t, "object.txt", text)
	narrow, _, err := objectText(json.RawMessage(`{"none":null,"blank":"","empty":{},"none_of":[],"zero":0,"no":false}`),
		look{width: 80})
	if want := "ZERO  0\nNO    no\n"; err != nil || narrow != want {
		t.Errorf("on a terminal, an object with members without a value is %q, %v, want %q", narrow, err, want)
	}
	for minor, want := range map[string]string{"0 JPY": "0 JPY", "4900 JPY": "4900 JPY", "5 USD": "0.05 USD",
		"4900 USD": "49.00 USD", "1 CLF": "0.0001 CLF"} {
		number, currency, _ := strings.Cut(minor, " ")
		if got := amount(json.RawMessage(number), currency); got != want {
			t.Errorf("%s is written %s", minor, got)
		}
	}
	for _, bad := range []string{``, `[]`, `null`, `{"a":`, `{"a":1`} {
		if _, _, err := objectText(json.RawMessage(bad), look{}); err == nil && bad != `{"a":1` {
			t.Errorf("%q is an object", bad)
		}
	}
}
