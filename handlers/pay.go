package handlers

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/valyala/fasthttp"

	"licet/handlers/paypage"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/payment"
)

// payRoutes are the functions of the routes of the pay page.
type payRoutes struct{ *Server }

const (
	payPrefix       = "/pay/"
	contentTypeHTML = "text/html; charset=utf-8"
)

// payPath returns the path of an order's pay page. The path is the only secret of the page.
func payPath(orderNo, token string) string { return payPrefix + orderNo + "/" + token }

// PayURL returns the address of the pay page of an unpaid order, for a provider that sends the buyer back.
func PayURL(publicURL string, ring keyring.MasterRing, order *licensing.Order) (string, error) {
	token, err := ring.PayToken(order)
	if err != nil {
		return "", err
	}
	return publicURL + payPath(order.OrderNo, token), nil
}

// payLinks makes the addresses of pay pages.
type payLinks struct {
	publicURL string
	ring      keyring.MasterRing
	log       zerolog.Logger
	missing   sync.Map // ids of master keys that the node has logged
}

// of returns the address of an order's pay page. It returns nil if the order is paid or canceled, or if its expiry is
// recorded. It also returns nil if this node lacks the master key of the order's pay token: other nodes may have it.
func (l *payLinks) of(o *licensing.Order) *string {
	if o.PaySeed.MasterID == "" {
		return nil
	}
	link, err := PayURL(l.publicURL, l.ring, o)
	if err != nil {
		if _, logged := l.missing.LoadOrStore(o.PaySeed.MasterID, true); !logged {
			l.log.Error().Err(err).
				Msg("responses of this node lack pay_url: give this node the master keys of the service and restart it")
		}
		return nil
	}
	return &link
}

// pageWanted reports whether a person waits for the response. All paths below the
// pay pages count, so that a link that a mail program cut off finds a page too.
func pageWanted(res *resource, path string) bool {
	return res != nil && res.page || res == nil && strings.HasPrefix(path, payPrefix)
}

// payPagePath names the pay page of an order.
type payPagePath struct {
	OrderNo text `path:"order_no"`
	Token   text `path:"token"`
}

func (in *payPagePath) path() string { return payPath(in.OrderNo.value, in.Token.value) }

// showOrder answers the pay page of an order, or the result of the payment. Above the limit of the order, the page
// shows what is recorded.
func (s payRoutes) showOrder(ctx context.Context, c *call, in payPagePath) (document, error) {
	o, err := s.orderToPay(ctx, c, &in)
	if err != nil {
		return document{}, err
	}
	pending := false
	if o.CheckoutOpen() && !s.rates.limits.PayPage(o.OrderNo).Refused {
		o, pending = s.cfg.Desk.Check(ctx, o)
	}
	product, err := s.cfg.Node.Product(ctx, o.Owner, o.ProductID)
	if err != nil && licensing.ReasonOf(err) != licensing.ReasonProductNotFound {
		return document{}, err
	}
	return s.orderPage(ctx, &o, in.path(), cmp.Or(product.Name, o.ProductID), pending)
}

// orderToPay looks up the order of a pay page. The token in the address may be a guess, so a wrong token counts as a
// failed authentication.
func (s payRoutes) orderToPay(ctx context.Context, c *call, in *payPagePath) (o licensing.Order, err error) {
	wrong := false
	err = s.rates.attempt(ctx, c, func() (good bool, err error) {
		o, err = s.cfg.Node.OrderToPay(ctx, in.OrderNo.value, in.Token.value)
		wrong = licensing.ReasonOf(err) == licensing.ReasonOrderNotFound
		if wrong {
			err = nil
		}
		return !wrong, err
	})
	if err == nil && wrong {
		err = licensing.ErrOrderNotFound
	}
	return o, err
}

// payForm is the form of the pay page. It needs no cookie and no token beside the address, which
// is the secret. The adapter refuses forms that a foreign page made the buyer's
// browser send.
type payForm struct {
	payPagePath
	Action text `form:"action"`
}

func (in *payForm) check(c *checks) {
	if c.describe("action", Limits{Enum: payment.PlayNames()}) {
		return
	}
	if !slices.Contains(payment.PlayNames(), in.Action.value) {
		c.refuse(malformed("the form must say action=pay or action=cancel"))
	}
}

// payOrCancel pays or cancels an order, or plays something else about it in the sandbox.
func (s payRoutes) payOrCancel(ctx context.Context, c *call, in payForm) (document, error) {
	o, err := s.orderToPay(ctx, c, &in.payPagePath)
	if err != nil {
		return document{}, err
	}
	if s.cfg.Desk.ProviderOf(o.Owner) != licensing.ProviderSandbox {
		if err := s.rates.payPage(c, o.OrderNo); err != nil {
			return document{}, err
		}
	}
	elsewhere := ""
	switch action := payment.Play(in.Action.value); action {
	case payment.PlayPay:
		_, elsewhere, err = s.cfg.Desk.Pay(ctx, o)
	case payment.PlayCancel:
		_, err = s.cfg.Desk.Cancel(ctx, o)
	default:
		_, err = s.cfg.Desk.Play(ctx, o, action)
	}
	if err != nil {
		return document{}, err
	}
	if elsewhere != "" {
		return seeOther(elsewhere), nil
	}
	// Also if the order has a success_url: browsers check a form's policy
	// against every hop of a redirect, so only a link leads to foreign sites.
	return seeOther(s.cfg.PublicURL + in.path()), nil
}

// sameOrigin reports whether a form comes from a page of our own origin, or from a client that
// sends no origin, which is no browser. Browsers send Origin with every POST. They
// send "null" for pages that hide their origin, and we have no such page. If a
// browser sends Sec-Fetch-Site, that decides, so that the page also works at other
// addresses than the public one.
func (r *request) sameOrigin(origin string) bool {
	switch r.header("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "", "none":
	default:
		return false
	}
	origins := r.fast.Request.Header.PeekAll(fasthttp.HeaderOrigin)
	return len(origins) == 0 || len(origins) == 1 && origin != "" && strings.EqualFold(string(origins[0]), origin)
}

func seeOther(location string) document {
	return document{
		status:      fasthttp.StatusSeeOther,
		contentType: contentTypeHTML,
		headers:     append(pageHeaders(), header{fasthttp.HeaderLocation, location}),
	}
}

// maxKeysOnPage is how many license keys the page of an order shows. Of more keys it says how many there are.
const maxKeysOnPage = 20

// orderPage renders the pay page of an order, which is at a path, or its result. product is the name of the product for
// people. pending: a payment is on its way. The page shows the license keys only if the order has no success_url:
// otherwise the shop shows them.
func (s payRoutes) orderPage(
	ctx context.Context, o *licensing.Order, path, product string, pending bool,
) (document, error) {
	p := paypage.Page{
		OrderNo:     o.OrderNo,
		Product:     product,
		Description: o.Description,
		Amount:      o.Amount,
		Quantity:    o.Licenses(),
		Currency:    o.Currency,
		State:       paypage.State(o.Status(s.cfg.Node.Now())),
		ExpiresAt:   o.ExpiresAt,
		Sandbox:     o.Owner.Mode == licensing.Test,
		SuccessURL:  o.SuccessURL,
		Action:      s.basePath + path,
	}
	for _, play := range s.cfg.Desk.Plays(*o) {
		p.Plays = append(p.Plays, string(play))
	}
	played, err := s.cfg.Desk.Played(ctx, *o)
	if err != nil {
		return document{}, err
	}
	p.Declined = played.Outcome == licensing.SandboxFailed
	// A refund that the shop asked for shows once it is made; until then the order is paid.
	if o.RefundDue && !o.CanceledAt.IsZero() {
		p.State = paypage.Processing
	}
	if o.SuccessURL == "" && !o.LicenseKey.IsZero() {
		if p.Licenses = o.Issued(); p.Licenses <= maxKeysOnPage {
			keys, err := s.cfg.Node.OrderKeys(ctx, o)
			if err != nil {
				return document{}, err
			}
			for _, key := range keys {
				p.LicenseKeys = append(p.LicenseKeys, s.keys.Text(key))
			}
		}
	}
	render := s.pages.Result
	if p.State == paypage.Unpaid && !pending {
		render = s.pages.Order
	}
	return renderPage(fasthttp.StatusOK, s.pages.CSP(), func(w io.Writer) error { return render(w, p) })
}

// renderPage returns the response with a page. policy is its Content-Security-Policy.
func renderPage(status int, policy string, render func(io.Writer) error) (document, error) {
	var body bytes.Buffer
	if err := render(&body); err != nil {
		return document{}, err
	}
	return document{
		status:      status,
		contentType: contentTypeHTML,
		headers:     append(pageHeaders(), header{fasthttp.HeaderContentSecurityPolicy, policy}),
		body:        body.Bytes(),
	}, nil
}

// pageHeaders returns the additional headers of pages. The referrer policy keeps
// the token in a page's address from other sites. A stricter policy would make
// browsers send our own form with the origin "null".
func pageHeaders() []header {
	return []header{
		{fasthttp.HeaderReferrerPolicy, "same-origin"},
		{fasthttp.HeaderXFrameOptions, "DENY"},
	}
}

// problemPage replaces the JSON of an error with a page for people. It reports false
// if rendering fails; the error is then sent as JSON.
func (s *Server) problemPage(r *request, answer *document, known *licensing.Error) bool {
	render := func(w io.Writer) error {
		title, advice := problemText(known.Reason)
		return s.pages.Problem(w, title, advice, r.id)
	}
	if known.Reason == licensing.ReasonOrderNotFound || known.Reason == reasonNotFound {
		render = s.pages.NotFound
	}
	rendered, err := renderPage(answer.status, s.pages.CSP(), render)
	if err != nil {
		s.accessLog.unknown(r, err)
		return false
	}
	rendered.code = answer.code
	rendered.headers = append(rendered.headers, answer.headers...)
	*answer = rendered
	return true
}

// problemText returns what a page says to a buyer about an error.
func problemText(reason licensing.Reason) (title, advice string) {
	switch reason {
	case licensing.ReasonForbidden:
		return "This was not sent from the payment page",
			"Please open the payment page itself and press the button there."
	case licensing.ReasonInvalidOrderState:
		return "This is not possible any more", "Please look at the payment page to see where the order stands."
	case licensing.ReasonPaymentNotConfigured:
		return "Payment is not possible yet", "The seller has not set up a way to pay. Please ask the seller."
	case licensing.ReasonProviderFailed:
		return "The payment did not go through",
			"The payment provider did not answer as expected, and nothing was changed. " +
				"Please try again in a moment."
	case licensing.ReasonRateLimited:
		return "Please try again in a minute",
			"Too many requests for this payment, or too many wrong payment links, came in a short time."
	case licensing.ReasonUnavailable, licensing.ReasonOverloaded:
		return "Please try again in a moment", "The service can't be reached right now, and nothing was changed."
	case licensing.ReasonOutcomeUnknown:
		return "Please check again in a moment",
			"It is not certain yet whether this went through. " +
				"Opening the payment page again is safe, and so is pressing the button again."
	case licensing.ReasonInternal:
		return "Something went wrong", "The fault is on our side. Please try again later."
	default:
		return "This request can't be served", "Please open the payment page and try again from there."
	}
}
