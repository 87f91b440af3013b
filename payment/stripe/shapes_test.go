package stripe_test

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"licet/internal/process"
	"licet/licensing"
	"licet/payment"
	"licet/payment/stripe"
)

// TestShapes sends every request of the provider to stripe-mock, which checks the parameters against Stripe's
// description of the API and answers with examples. Its state does not follow the requests, so only the shapes are
// checked. Without a module proxy the test is skipped, except in CI.
func TestShapes(t *testing.T) {
	cfg := newFixture(t).cfg
	cfg.Client = stripe.NewClient(startMock(t))
	cfg.Clock = time.Now
	for _, taxed := range []bool{false, true} {
		cfg.AutomaticTax = taxed
		p := stripe.New(cfg)
		now := time.Now()
		order := licensing.Order{
			OrderNo: licensing.NewOrderNo(owner, ulid(1)), Owner: owner, ProductID: "pro",
			OrderPayment: licensing.OrderPayment{Amount: 4900, Currency: "USD"},
			Description:  "One year", BuyerEmail: "ann@example.com", CreatedAt: now,
			ExpiresAt: now.Add(time.Hour), Attempt: 1,
		}
		if _, err := p.Begin(t.Context(), order); err != nil {
			t.Errorf("begin: %v", err)
		}
		order.Checkout = "cs_test_1"
		if _, err := p.Begin(t.Context(), order); err != nil {
			t.Errorf("begin, with a session: %v", err)
		}
		if err := p.End(t.Context(), order); err != nil {
			t.Errorf("end: %v", err)
		}
		order.Checkout = ""
		if err := p.End(t.Context(), order); err != nil {
			t.Errorf("end, without a known session: %v", err)
		}
		for _, kind := range []payment.ObjectKind{
			payment.ObjectCheckout, payment.ObjectPayment, payment.ObjectCharge, payment.ObjectRefund,
			payment.ObjectDispute, payment.ObjectInvoice, payment.ObjectSubscription,
		} {
			if state, err := p.Look(t.Context(), payment.Object{Kind: kind, ID: "x_1"}); err != nil || state.ID == "" {
				t.Errorf("look at a %s: %+v, %v", kind, state, err)
			}
		}
		order.Payment = "pi_1"
		if _, err := p.Refund(t.Context(), order, refund(order, "ref_1", 100)); err != nil {
			t.Errorf("refund: %v", err)
		}
		if _, err := p.Events(t.Context(), now.Add(-time.Hour), "evt_1"); err != nil {
			t.Errorf("events: %v", err)
		}
		if _, err := p.Verify(t.Context()); err != nil {
			t.Errorf("verify: %v", err)
		}
		// The mock's example of an endpoint has no secret.
		if _, err := p.Connect(t.Context(), "https://licenses.example.com/callbacks"); err == nil ||
			!strings.Contains(err.Error(), "without a signing secret") {
			t.Errorf("connect: %v", err)
		}
		order.Interval, order.Subscription, order.Attempt = licensing.Period{Months: 1}, "sub_1", 2
		if _, err := p.Begin(t.Context(), order); err != nil {
			t.Errorf("begin a subscription: %v", err)
		}
		if _, err := p.Invoices(t.Context(), order); err != nil {
			t.Errorf("invoices: %v", err)
		}
		for _, change := range []payment.Change{
			{End: payment.EndOfPeriod}, {End: payment.EndNow}, {Resume: true},
			{Amount: 2000, Once: "chg_0"},
			{Amount: 3000, Prorate: true, Once: "chg_1"},
		} {
			if _, err := p.Change(t.Context(), order, change); err != nil {
				t.Errorf("%+v: %v", change, err)
			}
		}
		if _, err := p.Portal(t.Context(), order); err != nil {
			t.Errorf("portal: %v", err)
		}
	}
}

// TestShapesAreChecked: stripe-mock refuses a parameter that Stripe's API does not have.
func TestShapesAreChecked(t *testing.T) {
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, startMock(t)+"/v1/refunds",
		strings.NewReader("payment_intent=pi_1&no_such_parameter=1"))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+testKey)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusBadRequest {
		t.Errorf("stripe-mock answers %s", response.Status)
	}
}

var mockAddress = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// startMock builds and starts stripe-mock, and returns its URL.
func startMock(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "stripe-mock")
	err := process.BuildTool(t.Context(), program, "../../tools/go.mod", "github.com/stripe/stripe-mock")
	switch {
	case err != nil && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program, "-http-addr", "127.0.0.1:0")
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(output); lines.Scan(); {
		if address := mockAddress.FindString(lines.Text()); address != "" {
			return "http://" + address
		}
	}
	t.Fatal("stripe-mock has ended")
	return ""
}
