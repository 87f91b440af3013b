package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"licet/client"
	"licet/internal/fakestripe"
	"licet/loadtest/trial"
)

// books are what the service, its export and Stripe say at the end.
type books struct {
	orders   []client.Order // in the list
	details  map[string]*client.Order
	payments map[string][]client.Payment // by the number of the order
	licenses []client.License
	report   *client.SalesReport
	export   []row
	stripe   []fakestripe.Entry
	// subscriptions has the states of the subscriptions at Stripe, by the number of the order.
	subscriptions map[string]string
}

// row is a row of licet orders export.
type row map[string]string

// readBooks reads everything.
func (s *scene) readBooks(ctx context.Context) (*books, error) {
	b := &books{details: map[string]*client.Order{}, payments: map[string][]client.Payment{}}
	var errs [6]error
	b.orders, errs[0] = all(s.shop.desk.Orders(ctx, client.OrderFilter{}))
	b.licenses, errs[1] = all(s.shop.desk.Licenses(ctx, client.LicenseFilter{}))
	now := time.Now()
	b.report, errs[2] = s.shop.desk.SalesReport(ctx, client.SalesReportOf{By: client.ByDay,
		Period: client.Period{From: now.AddDate(0, 0, -2), To: now.AddDate(0, 0, 2)}})
	b.export, errs[3] = s.export(ctx)
	errs[4] = s.readDetails(ctx, b)
	b.stripe, b.subscriptions = s.fake.Ledger(), s.fake.Subscriptions()
	return b, errors.Join(errs[:]...)
}

// all reads a list to its end.
func all[T any](list func(yield func(T, error) bool)) (items []T, err error) {
	for item, failed := range list {
		if failed != nil {
			return nil, failed
		}
		items = append(items, item)
	}
	return items, nil
}

// readDetails looks up each order, with its license keys and its payments.
func (s *scene) readDetails(ctx context.Context, b *books) error {
	var mu sync.Mutex
	var failed error
	trial.Each(ctx, b.orders, func(ctx context.Context, o client.Order) {
		now, err := s.shop.desk.Order(ctx, o.OrderNo)
		payments, unlisted := s.shop.desk.ListOrderPayments(ctx, o.OrderNo, client.Page{})
		mu.Lock()
		defer mu.Unlock()
		if err = errors.Join(err, unlisted); err != nil {
			failed = errors.Join(failed, err)
			return
		}
		b.details[o.OrderNo], b.payments[o.OrderNo] = now, payments.Items
	})
	return errors.Join(failed, ctx.Err())
}

// export runs licet orders export, and reads the file.
func (s *scene) export(ctx context.Context) ([]row, error) {
	name := filepath.Join(s.dir, "orders.csv")
	if _, err := s.stage.Licet.Command(ctx, "orders", "export", "--restart", "--file", name, "--url",
		"http://"+s.stage.Nodes[0].Address, "--api-key-file", filepath.Join(s.dir, "api.key")); err != nil {
		return nil, err
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines, err := csv.NewReader(file).ReadAll()
	if err != nil || len(lines) == 0 {
		return nil, fmt.Errorf("read the export: %w", err)
	}
	var rows []row
	for _, line := range lines[1:] {
		r := row{}
		for i, name := range lines[0] {
			r[name] = line[i]
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// number returns a decimal number of the export in the minor unit of a currency.
func (r row) number(column string) (int64, error) {
	return strconv.ParseInt(strings.Replace(r[column], ".", "", 1), 10, 64)
}

// money is what Stripe and the shop have of an order, in the minor unit of its currency.
type money struct {
	paid, returned int64
	payments       []string // references
	// invoices are the amounts of the further invoices of a subscription, by their ids, and invoiced is their sum.
	invoices map[string]int64
	invoiced int64
	until    time.Time // the end of the period that is paid for
}

// kept is the order's own payment less its refunds.
func (m *money) kept() int64 { return m.paid - m.returned }

// moneyOf adds up what Stripe and the shop have of each order.
func moneyOf(buyers []*buyer, entries []fakestripe.Entry) map[string]*money {
	sums, of := map[string]*money{}, map[string]*buyer{}
	for _, b := range buyers {
		if b.order == "" {
			continue
		}
		m := &money{invoices: map[string]int64{}}
		if b.outside != "" {
			m.paid, m.payments = b.amount, []string{b.outside}
		}
		sums[b.order], of[b.order] = m, b
	}
	for _, e := range entries {
		m := sums[e.OrderNo]
		if m == nil {
			continue // the audit names the entry
		}
		amount := e.Amount / of[e.OrderNo].price.stripe
		if e.Until.After(m.until) {
			m.until = e.Until
		}
		switch {
		case e.Kind != "charge":
			m.returned -= amount
		case e.Invoice != "" && m.paid > 0:
			m.invoices[e.Invoice] += amount
			m.invoiced += amount
		default:
			m.paid += amount
			m.payments = append(m.payments, e.Payment)
		}
	}
	return sums
}
