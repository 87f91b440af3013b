package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	defaultListPage = 20
	// listCursorVersion distinguishes these cursors from those of devices.
	listCursorVersion = 2
	listCursorBytes   = 1 + listCursorSum
	listCursorSum     = 8
	maxListCursor     = 512
)

// pageQuery is embedded by the request types of listings. What a listing was asked for goes into
// its cursors: a cursor of another listing, or of other filters, is refused, since reading on from
// there would skip items.
type pageQuery struct {
	Limit  param `query:"limit"`
	Cursor param `query:"cursor"`

	asked []string // which listing, whose, and each filter
	page  store.Page
}

// list begins the check of a listing. of narrows the listing beside its filters.
func (q *pageQuery) list(c *checks, name string, of ...string) {
	owner := c.owner()
	q.asked = append([]string{name, owner.AccountID, string(owner.Mode)}, of...)
}

// filter checks a parameter that narrows a listing.
func (q *pageQuery) filter(c *checks, field string, in param, l Limits, valid func(string) bool, problem string) {
	if c.describe(field, l) || !in.given {
		return
	}
	if !valid(in.value) {
		c.add(field, problem)
	}
	q.asked = append(q.asked, field, in.value)
}

func (q *pageQuery) productID(c *checks, in param) {
	limits := Limits{MinLength: 1, MaxLength: maxProductID, Pattern: patternProductID}
	q.filter(c, "product_id", in, limits, validProductID, problemProductID())
}

// buyerEmail takes an address in any case, as the buyer may have typed it.
func (q *pageQuery) buyerEmail(c *checks, in param) {
	q.filter(c, "buyer_email", in, Limits{MaxLength: maxEmail, Format: formatEmail}, plausibleEmail, problemEmail)
}

func (q *pageQuery) reference(c *checks, field string, in param, most referenceUpTo) {
	q.filter(c, field, in, most.limits(), most.valid, most.problem())
}

func (q *pageQuery) status(c *checks, in param, all []string) { q.oneOf(c, "status", in, all) }

// oneOf checks a parameter with a fixed set of values.
func (q *pageQuery) oneOf(c *checks, field string, in param, all []string) {
	valid := func(value string) bool { return slices.Contains(all, value) }
	q.filter(c, field, in, Limits{Enum: all}, valid, "must be one of "+strings.Join(all, ", "))
}

// span checks the two parameters of a range of times, such as created_from and created_to.
func (q *pageQuery) span(c *checks, name string, from, to param) (r licensing.TimeRange) {
	for _, end := range []struct {
		field string
		in    param
		at    *time.Time
	}{{name + "_from", from, &r.From}, {name + "_to", to, &r.To}} {
		*end.at = c.momentOrDay(end.field, text(end.in))
		if end.in.given {
			q.asked = append(q.asked, end.field, end.in.value)
		}
	}
	if !r.From.IsZero() && !r.To.IsZero() && !r.From.Before(r.To) {
		c.add(name+"_to", "must be later than "+name+"_from")
	}
	return r
}

// checkPage checks limit and cursor, after the filters. Once a filter is invalid, the cursor can't
// be checked against the filters.
func (q *pageQuery) checkPage(c *checks) {
	unclear := len(c.fields) > 0
	q.page = store.Page{Limit: c.limit(q.Limit, defaultListPage, store.MaxListPage)}
	if !c.describe("cursor", Limits{}) && q.Cursor.given {
		at, formed := parseListCursor(q.Cursor.value)
		if !formed || !unclear && *q.formatCursor(at) != q.Cursor.value {
			c.add("cursor", problemCursor+", with the same filters")
		}
		q.page.Before = at
	}
}

// limit checks how many items a page may have, and returns that.
func (c *rules) limit(in param, standard, most int) int {
	const field = "limit"
	if c.describe(field, Limits{Bounded: true, Minimum: 1, Maximum: int64(most)}) || !in.given {
		return standard
	}
	limit, err := strconv.ParseUint(in.value, 10, 32)
	if err != nil || limit < 1 || limit > uint64(most) {
		c.add(field, "must be an integer from 1 to "+strconv.Itoa(most))
	}
	return int(limit)
}

const problemCursor = "must be the next_cursor of an earlier page"

// formatCursor returns the cursor of the page after a position; nil at the end. To callers the
// cursor is opaque: a version byte, a hash of the position and of everything that was asked, and
// the position, in base64 for URLs.
func (q *pageQuery) formatCursor(at store.Position) *string {
	if at == "" {
		return nil
	}
	sum := sha256.New()
	for _, text := range q.asked {
		fmt.Fprintf(sum, "%d:%s", len(text), text)
	}
	sum.Write([]byte(at))
	raw := append([]byte{listCursorVersion}, sum.Sum(nil)[:listCursorSum]...)
	cursor := base64.RawURLEncoding.EncodeToString(append(raw, at...))
	return &cursor
}

// parseListCursor returns the position in a cursor of formatCursor. checkPage checks the rest of
// the cursor by formatting the position again.
func parseListCursor(cursor string) (store.Position, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(cursor) > maxListCursor || len(raw) <= listCursorBytes || raw[0] != listCursorVersion {
		return "", false
	}
	return store.Position(raw[listCursorBytes:]), true
}

// answers converts the items of a page.
func answers[T, A any](items []T, answer func(*T) A) []A {
	made := make([]A, len(items))
	for i := range items {
		made[i] = answer(&items[i])
	}
	return made
}

// licenseQuery asks for a page of licenses.
type licenseQuery struct {
	ProductID   param `query:"product_id"`
	Status      param `query:"status"`
	OrderNo     param `query:"order_no"`
	BuyerEmail  param `query:"buyer_email"`
	Reference   param `query:"customer_reference"`
	ExternalKey param `query:"external_key"`
	pageQuery

	external string
}

func (q *licenseQuery) check(c *checks) {
	q.list(c, "licenses")
	q.productID(c, q.ProductID)
	q.status(c, q.Status, words(licensing.Statuses()))
	q.filter(c, "order_no", q.OrderNo, Limits{}, licensing.ValidOrderNo, "must be an order number")
	q.buyerEmail(c, q.BuyerEmail)
	q.reference(c, "customer_reference", q.Reference, licensing.MaxCustomerReference)
	q.external = c.externalKey("external_key", text(q.ExternalKey))
	q.checkPage(c)
}

type licenseList struct {
	Licenses []license `json:"licenses"`
	Next     *string   `json:"next_cursor"`
}

// listLicenses pages through the caller's licenses.
func (s licenseRoutes) listLicenses(ctx context.Context, c *call, q licenseQuery) (licenseList, error) {
	filter := service.LicenseFilter{
		ProductID:   q.ProductID.value,
		Status:      licensing.Status(q.Status.value),
		OrderNo:     q.OrderNo.value,
		Customer:    licensing.Customer{BuyerEmail: q.BuyerEmail.value, Reference: q.Reference.value},
		ExternalKey: q.external,
	}
	list, err := s.cfg.Node.ListLicenses(ctx, c.owner(), filter, q.page)
	if err != nil {
		return licenseList{}, err
	}
	now, leaseTime := s.cfg.Node.Now(), s.cfg.Node.LeaseTime()
	return licenseList{
		answers(list.Items, func(view *store.LicenseView) license { return s.licenseAnswer(view, now, leaseTime) }),
		q.formatCursor(list.Next),
	}, nil
}

// orderQuery asks for a page of orders.
type orderQuery struct {
	ProductID  param `query:"product_id"`
	Status     param `query:"status"`
	BuyerEmail param `query:"buyer_email"`
	Provider   param `query:"payment_provider"`
	Reference  param `query:"reference"`

	CreatedFrom  param `query:"created_from"`
	CreatedTo    param `query:"created_to"`
	PaidFrom     param `query:"paid_from"`
	PaidTo       param `query:"paid_to"`
	RefundedFrom param `query:"refunded_from"`
	RefundedTo   param `query:"refunded_to"`
	pageQuery

	created, paid, refunded licensing.TimeRange
}

func (q *orderQuery) check(c *checks) {
	q.list(c, "orders")
	q.productID(c, q.ProductID)
	q.status(c, q.Status, words(licensing.OrderStatuses()))
	q.buyerEmail(c, q.BuyerEmail)
	q.oneOf(c, "payment_provider", q.Provider, words(licensing.PaymentProviders()))
	q.reference(c, "reference", q.Reference, maxPaymentReference)
	q.created = q.span(c, "created", q.CreatedFrom, q.CreatedTo)
	q.paid = q.span(c, "paid", q.PaidFrom, q.PaidTo)
	q.refunded = q.span(c, "refunded", q.RefundedFrom, q.RefundedTo)
	q.checkPage(c)
}

type orderList struct {
	Orders []order `json:"orders"`
	Next   *string `json:"next_cursor"`
}

// listOrders pages through the caller's orders.
func (s orderRoutes) listOrders(ctx context.Context, c *call, q orderQuery) (orderList, error) {
	filter := service.OrderFilter{
		ProductID:  q.ProductID.value,
		Status:     licensing.OrderStatus(q.Status.value),
		BuyerEmail: q.BuyerEmail.value,
		Provider:   licensing.PaymentProvider(q.Provider.value),
		Reference:  q.Reference.value,
		Created:    q.created,
		Paid:       q.paid,
		Refunded:   q.refunded,
	}
	list, err := s.cfg.Node.ListOrders(ctx, c.owner(), filter, q.page)
	if err != nil {
		return orderList{}, err
	}
	return orderList{answers(list.Items, s.answer), q.formatCursor(list.Next)}, nil
}

// productQuery asks for a page of products.
type productQuery struct{ pageQuery }

func (q *productQuery) check(c *checks) {
	q.list(c, "products")
	q.checkPage(c)
}

type productList struct {
	Products []product `json:"products"`
	Next     *string   `json:"next_cursor"`
}

// listProducts pages through the caller's products.
func (s productRoutes) listProducts(ctx context.Context, c *call, q productQuery) (productList, error) {
	list, err := s.cfg.Node.ListProducts(ctx, c.owner(), q.page)
	if err != nil {
		return productList{}, err
	}
	return productList{answers(list.Items, productAnswer), q.formatCursor(list.Next)}, nil
}

// apiKeyQuery asks for a page of API keys.
type apiKeyQuery struct{ pageQuery }

func (q *apiKeyQuery) check(c *checks) {
	q.list(c, "keys")
	q.checkPage(c)
}

type apiKeyList struct {
	Keys []apiKey `json:"keys"`
	Next *string  `json:"next_cursor"`
}

// listAPIKeys pages through the API keys of the caller's account and mode.
func (s keyRoutes) listAPIKeys(ctx context.Context, c *call, q apiKeyQuery) (apiKeyList, error) {
	list, err := s.cfg.Node.ListAPIKeys(ctx, c.owner(), q.page)
	if err != nil {
		return apiKeyList{}, err
	}
	now := s.cfg.Node.Now()
	return apiKeyList{
		answers(list.Items, func(k *licensing.APIKey) apiKey { return apiKeyAnswer(k, now) }),
		q.formatCursor(list.Next),
	}, nil
}

// words returns words of a string type as strings.
func words[T ~string](all []T) []string {
	plain := make([]string, len(all))
	for i, word := range all {
		plain[i] = string(word)
	}
	return plain
}
