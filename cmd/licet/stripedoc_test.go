package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"licet/internal/fakestripe"
)

// toService sends the requests for the public URL of a page to a service.
type toService struct{ address string }

func (to *toService) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", to.address
	return http.DefaultTransport.RoundTrip(r)
}

// TestDocumentedStripeRuns runs the commands of docs/guides/stripe.md, with the stand-in for Stripe. Between its
// commands a reader starts the service and pays in the browser.
func TestDocumentedStripeRuns(t *testing.T) {
	t.Parallel()
	needTools(t, "sh", "sed")
	fake := fakestripe.New(1)
	defer fake.Close()
	fake.AddKey(stripeTestKey)
	dir := secretFiles(t, map[string]string{"test.key": stripeTestKey})
	page := docPage(t, "guides/stripe.md")
	blocks := blocksOf(page, "sh")
	if len(blocks) != 4 {
		t.Fatalf("the page has %d blocks", len(blocks))
	}
	env := append(plainEnvironment(), "XDG_CONFIG_HOME="+t.TempDir(), "LICET_STRIPE_API_BASE="+fake.URL,
		"PATH="+selfAsLicet(t)+string(os.PathListSeparator)+os.Getenv("PATH"))
	shell := func(commands string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", commands)
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, after\n%s", err, out)
		}
		return string(out)
	}
	// The account of licet dev is known after its first start. A callback meets the files of the second start.
	data := filepath.Join(dir, "licet-data")
	first := startProcess(t, data)
	account := first.want(t, 200, "GET", "/v1/account", "").Data.text("account_id")
	first.kill()
	wantOutput(t, shell(strings.ReplaceAll(blocks[0], "acct_acme", account)),
		"https://licenses.example.com/v1/callbacks/stripe/"+account+"/test", "test.whsec")
	p := startProcess(t, data, "--stripe-api-base", fake.URL, "--stripe-test-key-file", filepath.Join(dir, "test.key"),
		"--stripe-test-webhook-secrets-file", filepath.Join(dir, "test.whsec"))
	fake.SendThrough(&toService{strings.TrimPrefix(p.url, "http://")})

	pay := shell(". ./licet-data/dev.env\n" + blocks[1])
	var order struct {
		PayURL  string `json:"pay_url"`
		OrderNo string `json:"order_no"`
	}
	if err := json.Unmarshal([]byte(readText(t, filepath.Join(dir, "order.json"))), &order); err != nil {
		t.Fatal(err)
	}
	wantOutput(t, pay, order.PayURL)
	pressed, err := p.press(t.Context(), order.PayURL, "pay")
	if err != nil || pressed.status != http.StatusSeeOther {
		t.Fatalf("%v %d %s", err, pressed.status, pressed.body)
	}
	if err := fake.Pay(path.Base(pressed.header.Get("Location")), fakestripe.CardPays); err != nil {
		t.Fatal(err)
	}
	fake.Delivered()

	rest := ". ./licet-data/dev.env\norder_no=" + order.OrderNo + "\n"
	wantOutput(t, shell(rest+blocks[2]), "paid", "stripe", "pi_", "49.00 USD")
	wantOutput(t, shell(rest+blocks[3]), "refunded")
	if kept := fake.Kept(order.OrderNo); kept != 0 {
		t.Errorf("Stripe keeps %d", kept)
	}
}
