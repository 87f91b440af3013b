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

	"licet/licensing/money"
)

// State is the state of an order as the customer sees it: one of the order's statuses, or Processing.
type State string

// The states of an order.
const (
	Unpaid     State = "unpaid"
	Paid       State = "paid"
	Expired    State = "expired"
	Canceled   State = "canceled"
	Refunded   State = "refunded"
	Processing State = "processing" // paid after it was canceled; a refund is due
)

// Page contains the parts of an order that the customer may see.
type Page struct {
	OrderNo     string
	Product     string // its name, or its id if it has no name
	Description string
	Amount      int64  // in the currency's minor unit
	Currency    string // ISO 4217, upper case
	State       State
	ExpiresAt   time.Time // zero: not shown
	Sandbox     bool      // the page says that no money moves
	Quantity    int       // of licenses that the order is for; 0: one
	// LicenseKeys are the keys of the order's licenses, and Licenses is how many the order has. The result of a paid
	// order shows the keys, or the number if there are no keys. Both may be empty.
	LicenseKeys []string
	Licenses    int
	SuccessURL  string // the result of a paid order links to it; may be empty
	Action      string // the path of the pay page, to which its form posts
	// Plays are the actions of the sandbox that the page offers besides paying and canceling; see plays.
	Plays    []string
	Declined bool // the latest payment has failed
}

// Buttons returns the buttons of Plays. An action without a label has no button.
func (p *Page) Buttons() (buttons []button) {
	for _, action := range p.Plays {
		if label, known := plays[action]; known {
			buttons = append(buttons, button{action, label})
		}
	}
	return buttons
}

type button struct{ Action, Label string }

// plays contains the labels of the sandbox's actions.
var plays = map[string]string{
	"decline":        "The bank declines the payment",
	"pay_later":      "Pay later: the payment is pending",
	"complete":       "The pending payment arrives",
	"fail":           "The pending payment or refund fails",
	"callback_twice": "Pay, and the callback comes twice",
	"callback_late":  "Pay, and the callback comes late",
	"refund_fails":   "The next refund fails",
	"invoice_paid":   "The next invoice is paid",
	"invoice_failed": "The payment of the next invoice fails",

	"cancel_subscription": "The subscription ends",
}

// outcome is the text of a page without a form.
type outcome struct {
	Tone    string // good, wait, back, stop or bad: the icon and its color
	Heading string
	Text    string
}

// outcomes has the texts for each state. They promise only what is true whatever the payment provider reports later:
// a payment may be in progress for an expired or canceled order.
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
		"This order had already been canceled when the payment arrived, so the money is being sent back. " +
			"There is nothing for you to do."},
}

// view is the data of the templates.
type view struct {
	Style template.CSS
	Title string
	outcome
	Order     *Page  // nil: the page is about no order
	Amount    string // of the order, formatted
	Continue  *link
	RequestID string
	Retry     bool // the page has a link to load it again
}

// Renderer writes pages. Make it with [New]. It is safe for concurrent use.
type Renderer struct {
	templates *template.Template
	style     template.CSS
	styleHash string // in the form of a Content-Security-Policy
}

//go:embed page.html.tmpl order.html.tmpl result.html.tmpl
var templateFiles embed.FS

//go:embed palette.css
var palette string

//go:embed style.css
var ownStyle string

// Palette returns the colors of the pages, light and dark, as custom properties of CSS.
func Palette() string { return palette }

// New returns a Renderer with the embedded templates and style.
func New() *Renderer {
	style := palette + ownStyle
	hash := sha256.Sum256([]byte(style))
	return &Renderer{
		templates: template.Must(template.ParseFS(templateFiles, "*.tmpl")),
		style:     template.CSS(style),
		styleHash: "sha256-" + base64.StdEncoding.EncodeToString(hash[:]),
	}
}

// Order writes the pay page. For an order that can't be paid anymore, it writes the result instead, without the
// license key, which only Result shows.
func (r *Renderer) Order(w io.Writer, p Page) error {
	if p.State != Unpaid {
		p.LicenseKeys, p.Licenses = nil, 0
		return r.Result(w, p)
	}
	amount := money.Format(p.Amount, p.Currency, "en")
	return r.render(w, "order", view{
		Title:  "Pay " + amount + " for " + p.Product,
		Order:  &p,
		Amount: amount,
	})
}

// Result writes the result of an order. For an unknown state it returns an error and writes nothing.
func (r *Renderer) Result(w io.Writer, p Page) error {
	outcome, known := outcomes[p.State]
	if !known {
		return fmt.Errorf("paypage: unknown state %q of order %s", p.State, p.OrderNo)
	}
	v := view{
		Title:   outcome.Heading + " - order " + p.OrderNo,
		outcome: outcome,
		Order:   &p,
		Amount:  money.Format(p.Amount, p.Currency, "en"),
		Retry:   p.State == Unpaid,
	}
	if p.State == Paid {
		v.Continue = safeLink(p.SuccessURL)
	} else {
		p.LicenseKeys, p.Licenses = nil, 0
	}
	return r.render(w, "result", v)
}

// NotFound writes the page for an unknown address. A wrong order number and a wrong token lead to the same page.
func (r *Renderer) NotFound(w io.Writer) error {
	return r.render(w, "result", view{
		Title: "Page not found",
		outcome: outcome{"bad", "Page not found",
			"There is no order at this address. Please check that the link is complete, " +
				"exactly as the seller gave it to you."},
	})
}

// Problem writes the page for a failed request, with a link to try again. The customer can quote requestID to the
// operator, whose logs have it; requestID may be empty.
func (r *Renderer) Problem(w io.Writer, title, text, requestID string) error {
	title = cmp.Or(title, "Something went wrong")
	return r.render(w, "result", view{
		Title:     title,
		outcome:   outcome{"bad", title, text},
		RequestID: requestID,
		Retry:     true,
	})
}

// render builds the whole page before it writes, so that an error never leaves an incomplete page.
func (r *Renderer) render(w io.Writer, name string, v view) error {
	v.Style = r.style
	var page bytes.Buffer
	if err := r.templates.ExecuteTemplate(&page, name, v); err != nil {
		return fmt.Errorf("paypage: %w", err)
	}
	_, err := page.WriteTo(w)
	return err
}
