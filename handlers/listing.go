package handlers

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

const (
	defaultListPage = 20
	// listCursorVersion tells these cursors from those of devices.
	listCursorVersion = 2
	listCursorBytes   = 1 + listCursorSum
	listCursorSum     = 8
	maxListCursor     = 512
)

// listQuery reads the query of a listing. What it was asked with goes into its
// cursors: one of another listing, or of other filters, is refused, since
// reading on from there would skip things.
type listQuery struct {
	query string
	asked []string // which listing, whose, and each filter
	bad   problems
}

func newListQuery(name string, r *request) *listQuery {
	owner := r.callerOwner()
	return &listQuery{query: r.query, asked: []string{name, owner.AccountID, string(owner.Mode)}}
}

// filter reads a parameter that narrows a listing; empty where it is not given.
func (q *listQuery) filter(name string, valid func(string) bool, problem string) string {
	value, given, ok := queryValue(q.query, name)
	if !given {
		return ""
	}
	if !ok || !valid(value) {
		q.bad.add(name, problem)
	}
	q.asked = append(q.asked, name, value)
	return value
}

func (q *listQuery) productID() string {
	return q.filter("product_id", validProductID, fmt.Sprintf("must be 1 to %d of the characters A-Z a-z 0-9 . _ -", maxProductID))
}

func (q *listQuery) orderNo() string {
	return q.filter("order_no", licensing.ValidOrderNo, "must be an order number")
}

// buyerEmail takes an address in any case, as the buyer may have typed it.
func (q *listQuery) buyerEmail() string {
	return q.filter("buyer_email", plausibleEmail, problemEmail)
}

func (q *listQuery) status(all ...string) string {
	return q.filter("status", func(status string) bool { return slices.Contains(all, status) }, "must be one of "+strings.Join(all, ", "))
}

// page reads limit and cursor, after the filters, and gives all problems.
func (q *listQuery) page() (store.Page, error) {
	// Which filters a bad one stands for nobody knows, nor whether a cursor is theirs.
	unclear := len(q.bad.fields) > 0
	page := store.Page{Limit: q.bad.limit(q.query, defaultListPage, store.MaxListPage)}
	if value, given, ok := queryValue(q.query, "cursor"); given {
		at, formed := parseListCursor(value)
		if !ok || !formed || !unclear && *q.formatCursor(at) != value {
			q.bad.add("cursor", problemCursor+", with the same filters")
		}
		page.Before = at
	}
	return page, q.bad.err()
}

// limit reads how many items a page may have.
func (p *problems) limit(query string, standard, most int) int {
	value, given, ok := queryValue(query, "limit")
	if !given {
		return standard
	}
	limit, err := strconv.ParseUint(value, 10, 32)
	if !ok || err != nil || limit < 1 || limit > uint64(most) {
		p.add("limit", "must be an integer from 1 to "+strconv.Itoa(most))
	}
	return int(limit)
}

const problemCursor = "must be a next_cursor as an earlier page gave it"

// formatCursor makes the cursor that leads on from a position; nil at the end. It
// is opaque to callers: a version byte, a hash of all the rest and of what was
// asked, and the position, in base64 for URLs.
func (q *listQuery) formatCursor(at store.Position) *string {
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

// parseListCursor reads the position out of what formatCursor wrote. Whether all
// the rest is right is seen by writing it again.
func parseListCursor(cursor string) (store.Position, bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(cursor) > maxListCursor || len(raw) <= listCursorBytes || raw[0] != listCursorVersion {
		return "", false
	}
	return store.Position(raw[listCursorBytes:]), true
}

// answers makes the answers of a page's items.
func answers[T, A any](items []T, answer func(*T) A) []A {
	made := make([]A, len(items))
	for i := range items {
		made[i] = answer(&items[i])
	}
	return made
}

// listLicenses pages through the caller's licenses.
func (s *Server) listLicenses(r *request) (any, error) {
	q := newListQuery("licenses", r)
	filter := service.LicenseFilter{
		ProductID:  q.productID(),
		Status:     licensing.Status(q.status(words(licensing.Statuses())...)),
		OrderNo:    q.orderNo(),
		BuyerEmail: q.buyerEmail(),
	}
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.Node.ListLicenses(r.ctx, r.callerOwner(), filter, page)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Node.Now()
	return struct {
		Licenses []license `json:"licenses"`
		Next     *string   `json:"next_cursor"`
	}{
		answers(list.Items, func(view *store.LicenseView) license { return licenseAnswer(view, now) }),
		q.formatCursor(list.Next),
	}, nil
}

// listOrders pages through the caller's orders.
func (s *Server) listOrders(r *request) (any, error) {
	q := newListQuery("orders", r)
	filter := service.OrderFilter{
		ProductID:  q.productID(),
		Status:     licensing.OrderStatus(q.status(words(licensing.OrderStatuses())...)),
		BuyerEmail: q.buyerEmail(),
	}
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.Node.ListOrders(r.ctx, r.callerOwner(), filter, page)
	if err != nil {
		return nil, err
	}
	return struct {
		Orders []order `json:"orders"`
		Next   *string `json:"next_cursor"`
	}{answers(list.Items, s.orderAnswer), q.formatCursor(list.Next)}, nil
}

// listProducts pages through the caller's products.
func (s *Server) listProducts(r *request) (any, error) {
	q := newListQuery("products", r)
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.Node.ListProducts(r.ctx, r.callerOwner(), page)
	if err != nil {
		return nil, err
	}
	return struct {
		Products []product `json:"products"`
		Next     *string   `json:"next_cursor"`
	}{answers(list.Items, productAnswer), q.formatCursor(list.Next)}, nil
}

// listAPIKeys pages through the API keys of the caller's account and mode.
func (s *Server) listAPIKeys(r *request) (any, error) {
	q := newListQuery("keys", r)
	page, err := q.page()
	if err != nil {
		return nil, err
	}
	list, err := s.cfg.Node.ListAPIKeys(r.ctx, r.callerOwner(), page)
	if err != nil {
		return nil, err
	}
	now := s.cfg.Node.Now()
	return struct {
		Keys []apiKey `json:"keys"`
		Next *string  `json:"next_cursor"`
	}{
		answers(list.Items, func(k *licensing.APIKey) apiKey { return apiKeyAnswer(k, now) }),
		q.formatCursor(list.Next),
	}, nil
}

// words gives words of a kind as plain strings.
func words[T ~string](all []T) []string {
	plain := make([]string, len(all))
	for i, word := range all {
		plain[i] = string(word)
	}
	return plain
}
