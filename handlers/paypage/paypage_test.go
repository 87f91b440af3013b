package paypage

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"html"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"
)

// order returns an unpaid order in which every field is set.
func order() Page {
	return Page{
		OrderNo:     "ord_VQ01K8Q2M7V3X9Z4T6B8N0P5R1SW",
		Product:     "pro-annual",
		Description: "Aurora Editor Pro\nfor one year",
		Amount:      4900,
		Currency:    "USD",
		State:       Unpaid,
		ExpiresAt:   time.Date(2026, 3, 1, 13, 30, 15, 0, time.FixedZone("", 3600)),
		LicenseKeys: []string{"AURORA-01K8Q-2M7V3-X9Z4T-6B8N0-P5R1S"}, Licenses: 1,
		SuccessURL: "https://shop.example/thanks?a=1&b=2",
		Action:     "/pay/ord_1/token",
	}
}

func inState(s State) Page {
	p := order()
	p.State = s
	return p
}

func render(t *testing.T, write func(io.Writer) error) string {
	t.Helper()
	var page bytes.Buffer
	if err := write(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func renderOrder(t *testing.T, p Page) string {
	t.Helper()
	return render(t, func(w io.Writer) error { return New().Order(w, p) })
}

func renderResult(t *testing.T, p Page) string {
	t.Helper()
	return render(t, func(w io.Writer) error { return New().Result(w, p) })
}

func contains(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %s", part)
		}
	}
}

func lacks(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(page, part) {
			t.Errorf("the page has %s", part)
		}
	}
}

const (
	payButton = `name="action" value="pay"`
	key       = "AURORA-01K8Q-2M7V3-X9Z4T-6B8N0-P5R1S"
	testMode  = "no money moves"
)

func TestOrder(t *testing.T) {
	page := renderOrder(t, order())
	contains(t, page,
		`<html lang="en">`,
		`<title>Pay $49.00 for pro-annual</title>`,
		`<h1>Complete your order</h1>`,
		`<dd class="product" dir="auto">pro-annual</dd>`,
		"<dd class=\"description\" dir=\"auto\">Aurora Editor Pro\nfor one year</dd>",
		`<dt>Total (USD)</dt>`,
		`<dd>$49.00</dd>`,
		`<form method="post" action="/pay/ord_1/token">`,
		`<button class="primary" `+payButton+`>Pay $49.00</button>`,
		`<summary>Cancel order</summary>`,
		`<button name="action" value="cancel">Yes, cancel this order</button>`,
		`<code>ord_VQ01K8Q2M7V3X9Z4T6B8N0P5R1SW</code>`,
		`<time datetime="2026-03-01T12:30:15Z">1 March 2026, 12:30 UTC</time>`,
	)
	lacks(t, page, testMode, "[Test]", key, "shop.example")

	bare := order()
	bare.Description, bare.ExpiresAt = "", time.Time{}
	lacks(t, renderOrder(t, bare), "Description", "Pay before", "<time")
}

// TestPlays: the pages of test mode have a button for each play, and none for an unknown one.
func TestPlays(t *testing.T) {
	p := order()
	p.Plays = []string{"steal"}
	for action := range plays {
		p.Plays = append(p.Plays, action)
	}
	for _, page := range []string{renderOrder(t, p), renderResult(t, p)} {
		for action, label := range plays {
			contains(t, page, `<button name="action" value="`+action+`">`+label+`</button>`)
		}
		contains(t, page, `<section class="plays" aria-labelledby="plays">`)
		lacks(t, page, "steal", "declined")
	}
	p.Plays, p.Declined = nil, true
	page := renderOrder(t, p)
	contains(t, page, "declined")
	lacks(t, page, "Test mode", `class="plays"`)
}

func TestEveryOrderPageNamesTheSandbox(t *testing.T) {
	for state := range outcomes {
		p := inState(state)
		p.Sandbox = true
		contains(t, renderOrder(t, p), testMode, "<title>[Test] ")
		contains(t, renderResult(t, p), testMode, "<title>[Test] ")
	}
}

func TestResult(t *testing.T) {
	for _, c := range []struct {
		state       State
		has, hasNot []string
	}{
		{Unpaid,
			[]string{"Payment not confirmed yet", `<a href="">Check again</a>`,
				`<a href="/pay/ord_1/token">Back to payment</a>`, "Pay before"},
			[]string{key, "shop.example"}},
		{Paid,
			[]string{"Payment received", `<code>` + key + `</code>`,
				`<a class="primary" href="https://shop.example/thanks?a=1&amp;b=2">Continue to shop.example</a>`},
			[]string{"Pay before", "Check again"}},
		{Expired, []string{"Order expired"}, []string{key, "<nav", "Pay before"}},
		{Canceled, []string{"Order canceled"}, []string{key, "<nav", "Pay before"}},
		{Refunded, []string{"Order refunded"}, []string{key, "<nav", "Pay before"}},
		{Processing, []string{"Refund on its way"}, []string{key, "<nav", "Pay before"}},
	} {
		t.Run(string(c.state), func(t *testing.T) {
			page := renderResult(t, inState(c.state))
			heading := c.has[0]
			contains(t, page, c.has...)
			contains(t, page,
				`role="status"`,
				"<title>"+heading+" - order ord_VQ01K8Q2M7V3X9Z4T6B8N0P5R1SW</title>",
				"<h1>"+heading+"</h1>",
				"<dd>$49.00</dd>",
				"<code>ord_VQ01K8Q2M7V3X9Z4T6B8N0P5R1SW</code>")
			lacks(t, page, c.hasNot...)
			lacks(t, page, "<form", payButton)
		})
	}
}

func TestPaidWithoutKeyOrSuccessURL(t *testing.T) {
	p := inState(Paid)
	p.LicenseKeys, p.Licenses, p.SuccessURL = nil, 0, ""
	lacks(t, renderResult(t, p), "license key", "<nav", "Continue")
}

func TestOrderNoLongerPayable(t *testing.T) {
	for state, outcome := range outcomes {
		if state == Unpaid {
			continue
		}
		page := renderOrder(t, inState(state))
		contains(t, page, "<h1>"+outcome.Heading+"</h1>")
		lacks(t, page, payButton, key)
	}
}

func TestUnknownStateWritesNothing(t *testing.T) {
	for _, write := range []func(*Renderer, io.Writer, Page) error{(*Renderer).Order, (*Renderer).Result} {
		var page bytes.Buffer
		if err := write(New(), &page, inState("frozen")); err == nil || page.Len() > 0 {
			t.Errorf("got %v and %d bytes, want an error and none", err, page.Len())
		}
	}
}

func TestErrorOfTheWriterIsReported(t *testing.T) {
	r, w := io.Pipe()
	gone := errors.New("gone")
	r.CloseWithError(gone)
	if err := New().NotFound(w); !errors.Is(err, gone) {
		t.Errorf("got %v, want %v", err, gone)
	}
}

func TestPagesOfNoOrder(t *testing.T) {
	page := render(t, New().NotFound)
	contains(t, page, "<title>Page not found</title>", "<h1>Page not found</h1>")
	lacks(t, page, "<footer", "<nav", "<dl")

	problem := func(title, text, id string) string {
		return render(t, func(w io.Writer) error { return New().Problem(w, title, text, id) })
	}
	page = problem("Try again soon", "Nothing was <done>.", "req-1")
	contains(t, page, "<title>Try again soon</title>", "<h1>Try again soon</h1>",
		"<p>Nothing was &lt;done&gt;.</p>", "<code>req-1</code>", `<a href="">Try again</a>`)

	page = problem("", "", "")
	contains(t, page, "<h1>Something went wrong</h1>")
	lacks(t, page, "<p>", "Reference")
}

// TestHostileText: pages escape all text of shops.
func TestHostileText(t *testing.T) {
	const evil = `</title></style>"'><script>alert(1)</script><img src=x onerror=alert(1)>{{.}}`
	p := Page{OrderNo: evil, Product: evil, Description: evil, Currency: evil, LicenseKeys: []string{evil},
		SuccessURL: evil, Action: `javascript:alert(1)`, Amount: 1}
	pages := []string{render(t, func(w io.Writer) error { return New().Problem(w, evil, evil, evil) })}
	for state := range outcomes {
		p.State = state
		pages = append(pages, renderOrder(t, p), renderResult(t, p))
	}
	for _, page := range pages {
		lacks(t, page, "<script", "<img", "javascript:")
		contains(t, page, "&lt;script&gt;")
		if n := strings.Count(page, "</style>") + strings.Count(page, "</title>"); n != 2 {
			t.Errorf("text closed the title or the style: %d ends, want 2", n)
		}
		title := regexp.MustCompile(`<title>([^<]*)</title>`).FindStringSubmatch(page)
		if title == nil || !strings.Contains(html.UnescapeString(title[1]), evil) {
			t.Errorf("the title is %q", title)
		}
	}
}

func TestUnsafeSuccessURLIsNoLink(t *testing.T) {
	for _, address := range []string{
		"javascript:alert(1)", "JavaScript://shop.example/%0aalert(1)", "data:text/html,x", "http://shop.example/",
		"//shop.example/", "/thanks", "shop.example", "https:", "https:///x", "https:shop.example",
		"ftp://shop.example/",
		"http://127.0.0.1.shop.example/", " https://shop.example/", "https://shop.example/\n", "\x00",
	} {
		p := inState(Paid)
		p.SuccessURL = address
		lacks(t, renderResult(t, p), "<nav", "Continue", "shop.example")
	}
}

// TestContinueNamesTheHost: the text of the link names the host of its URL.
func TestContinueNamesTheHost(t *testing.T) {
	p := inState(Paid)
	p.SuccessURL = "https://bank.example@shop.example:8443/x"
	contains(t, renderResult(t, p), ">Continue to shop.example</a>")
	p.SuccessURL = "http://localhost:3000/x"
	contains(t, renderResult(t, p), `href="http://localhost:3000/x">Continue to localhost</a>`)
}

// TestPolicyAllowsTheStyle hashes the text between the tags, as browsers do.
func TestPolicyAllowsTheStyle(t *testing.T) {
	page := renderOrder(t, order())
	_, rest, _ := strings.Cut(page, "<style>")
	style, _, _ := strings.Cut(rest, "</style>")
	hash := sha256.Sum256([]byte(style))
	contains(t, New().CSP(), "; style-src 'sha256-"+base64.StdEncoding.EncodeToString(hash[:])+"';")
	if len(style) < 1000 || strings.Contains(style, "\r") { // browsers turn CRLF into LF, and so change the hash
		t.Errorf("the style has %d bytes, or carriage returns", len(style))
	}
}

func TestPolicyFormTargets(t *testing.T) {
	f := func(want string, targets ...string) {
		t.Helper()
		contains(t, New().CSP(targets...), "default-src 'none'; ",
			"; form-action "+want+"; base-uri 'none'; frame-ancestors 'none'")
	}
	f("'self'")
	f("'self'", "", "javascript:alert(1)", "http://shop.example/", "/path")
	f("'self' https://shop.example", "https://Shop.Example/thanks?x=1;y", "https://shop.example/other")
	f("'self' https://shop.example:8443 https://checkout.stripe.com", "https://u:p@shop.example:8443/",
		"https://checkout.stripe.com")
	f("'self' http://localhost:3000 http://127.0.0.1:3000", "http://localhost:3000/ok", "http://127.0.0.1:3000/ok")

	// Hosts that a policy can't name, and hosts that try to break out of the policy.
	f("'self' http:", "http://[::1]:3000/ok")
	f("'self' https:", "https://bücher.example/", "https://a;script-src*/", "https://*.example/", "https://a'b,c/")
}

// TestPagesObeyTheirPolicy: no page has an element that its policy would block.
func TestPagesObeyTheirPolicy(t *testing.T) {
	blocked := regexp.MustCompile(`(?i)<(script|link|img|iframe|object|base)|\sstyle=|\son[a-z]+=|@import|url\(|http-equiv`)
	pages := []string{render(t, New().NotFound), renderOrder(t, order())}
	for state := range outcomes {
		pages = append(pages, renderResult(t, inState(state)))
	}
	for _, page := range pages {
		if found := blocked.FindString(page); found != "" {
			t.Errorf("the page has %q", found)
		}
		if n := strings.Count(page, "<h1>"); n != 1 {
			t.Errorf("the page has %d main headings", n)
		}
	}
}

func TestSameInputSamePage(t *testing.T) {
	r := New()
	want := renderResult(t, inState(Paid))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			var page bytes.Buffer
			if err := r.Result(&page, inState(Paid)); err != nil || page.String() != want {
				t.Errorf("another page than before, error %v", err)
			}
		})
	}
	all.Wait()
}
