// Package paypage renders the pages that a buyer sees: the pay page of an
// order, what became of it, and the pages for when something is wrong.
//
// They are plain documents, without a script and without anything to fetch, so
// that they show at once on any browser, read well through curl, and can be
// sent under the strictest policy there is ([Renderer.CSP]). The package knows
// nothing of HTTP: the caller sets status and headers. One header needs care:
// the pages ask for the referrer policy same-origin, which keeps the token in
// their address from leaking. The stricter no-referrer would also make browsers
// send "Origin: null" with our own form, as if it came from elsewhere.
package paypage

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"time"

	"licet/licensing"
)

// State is where an order stands, as a buyer sees it. Its values are those of
// an order's status, and one more.
type State string

// The states of an order, from the buyer's view.
const (
	Unpaid     State = "unpaid"
	Paid       State = "paid"
	Expired    State = "expired"
	Canceled   State = "canceled"
	Refunded   State = "refunded"
	Processing State = "processing" // paid after it was canceled: the money is on its way back
)

// Page is what a buyer may see of an order.
type Page struct {
	OrderNo     string
	ProductID   string
	Description string
	Amount      int64  // in the currency's minor unit
	Currency    string // ISO 4217, upper case
	State       State
	ExpiresAt   time.Time // zero: not shown
	Sandbox     bool      // say clearly that no money moves
	LicenseKey  string    // shown on the result of a paid order, if set
	SuccessURL  string    // where the buyer of a paid order goes on to, if set
	Action      string    // path of the pay page, which its form posts to
}

// outcome is how a page that asks for nothing puts its news.
type outcome struct {
	Tone    string // good, wait, back, stop or bad: the icon and its color
	Heading string
	Text    string
}

// outcomes promises only what is certain whatever the payment provider reports
// later: an order that expired or was canceled may have a payment under way.
var outcomes = map[State]outcome{
	Unpaid: {"wait", "Payment not confirmed yet",
		"If you have just paid, this can take a moment: check again shortly. Otherwise the order is still open."},
	Paid: {"good", "Payment received",
		"Thank you. Your order is complete."},
	Expired: {"wait", "Order expired",
		"This order was not paid in time. To buy after all, start a new order with the seller."},
	Canceled: {"stop", "Order canceled",
		"This order was canceled before it was paid. To buy after all, start a new order with the seller."},
	Refunded: {"back", "Order refunded",
		"The payment was sent back. It can take some days to arrive. A license issued for this order no longer works."},
	Processing: {"back", "Refund on its way",
		"This order had already been canceled when the payment arrived, so the money is being sent back. There is nothing for you to do."},
}

// view is what the templates see.
type view struct {
	Style template.CSS
	Title string
	outcome
	Order     *Page  // nil: a page about no order
	Amount    string // the order's, for people
	Continue  *link
	RequestID string
	Retry     bool // offer to load the page again
}

// Renderer writes pages. It is safe for concurrent use.
type Renderer struct {
	templates *template.Template
	style     template.CSS
	styleHash string // as a policy names it
}

//go:embed page.html.tmpl order.html.tmpl result.html.tmpl
var templateFiles embed.FS

//go:embed style.css
var styleSheet string

// New prepares a Renderer from what is embedded in the binary.
func New() *Renderer {
	hash := sha256.Sum256([]byte(styleSheet))
	return &Renderer{
		templates: template.Must(template.ParseFS(templateFiles, "*.tmpl")),
		style:     template.CSS(styleSheet),
		styleHash: "sha256-" + base64.StdEncoding.EncodeToString(hash[:]),
	}
}

// Order writes the pay page. Of an order that can't be paid anymore it tells
// what became of it, but not the license key: that is for the result page.
func (r *Renderer) Order(w io.Writer, p Page) error {
	if p.State != Unpaid {
		p.LicenseKey = ""
		return r.Result(w, p)
	}
	amount := licensing.FormatAmount(p.Amount, p.Currency, "en")
	return r.render(w, "order", view{
		Title:  "Pay " + amount + " for " + p.ProductID,
		Order:  &p,
		Amount: amount,
	})
}

// Result writes what became of an order. A state that it does not know is an
// error, before anything is written.
func (r *Renderer) Result(w io.Writer, p Page) error {
	outcome, known := outcomes[p.State]
	if !known {
		return fmt.Errorf("paypage: unknown state %q of order %s", p.State, p.OrderNo)
	}
	v := view{
		Title:   outcome.Heading + " - order " + p.OrderNo,
		outcome: outcome,
		Order:   &p,
		Amount:  licensing.FormatAmount(p.Amount, p.Currency, "en"),
		Retry:   p.State == Unpaid,
	}
	if p.State == Paid {
		v.Continue = safeLink(p.SuccessURL)
	} else {
		p.LicenseKey = ""
	}
	return r.render(w, "result", v)
}

// NotFound writes the page for an address that is no order's. It is the same
// for an order that never was and for a wrong token.
func (r *Renderer) NotFound(w io.Writer) error {
	return r.render(w, "result", view{
		Title: "Page not found",
		outcome: outcome{"bad", "Page not found",
			"There is no order at this address. Please check that the link is complete, exactly as the seller gave it to you."},
	})
}

// Problem writes the page for a request that could not be served, and lets the
// buyer try again. Title and text are for people; requestID, if known, is what
// they can quote to whoever has the logs.
func (r *Renderer) Problem(w io.Writer, title, text, requestID string) error {
	title = cmp.Or(title, "Something went wrong")
	return r.render(w, "result", view{
		Title:     title,
		outcome:   outcome{"bad", title, text},
		RequestID: requestID,
		Retry:     true,
	})
}

// render builds the whole page before it writes any of it, so that an error
// never leaves half a page behind.
func (r *Renderer) render(w io.Writer, name string, v view) error {
	v.Style = r.style
	var page bytes.Buffer
	if err := r.templates.ExecuteTemplate(&page, name, v); err != nil {
		return fmt.Errorf("paypage: %w", err)
	}
	_, err := page.WriteTo(w)
	return err
}
