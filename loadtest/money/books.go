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
	"licet/loadtest/rig"
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
	// disputes has the states of the disputes at Stripe, by their ids.
	disputes map[string]string
}

// readers is how many goroutines read orders.
const readers = 16

// row is a row of licet orders export.
type row map[string]string

// readBooks reads everything.
func (s *scene) readBooks(ctx context.Context) (*books, error) {
	b := s.stripeBooks()
	b.details, b.payments = map[string]*client.Order{}, map[string][]client.Payment{}
	var errs [5]error
	b.orders, errs[0] = rig.Collect(s.shop.desk.Orders.All(ctx, client.OrderFilter{}))
	b.licenses, errs[1] = rig.Collect(s.shop.desk.Licenses.All(ctx, client.LicenseFilter{}))
	now := time.Now()
	b.report, errs[2] = s.shop.desk.Reports.Sales(ctx, client.SalesReportOf{By: client.ByDay,
		Period: client.Period{From: now.AddDate(0, 0, -2), To: now.AddDate(0, 0, 2)}})
	b.export, errs[3] = s.export(ctx)
	errs[4] = s.readDetails(ctx, b)
	return b, errors.Join(errs[:]...)
}

// stripeBooks returns what Stripe says.
func (s *scene) stripeBooks() *books {
	return &books{stripe: s.fake.Ledger(), subscriptions: s.fake.Subscriptions(), disputes: s.fake.DisputeStates()}
}

// payments returns the payment records of an order.
func (s *scene) payments(ctx context.Context, orderNo string) ([]client.Payment, error) {
	list, err := s.shop.desk.Orders.ListPayments(ctx, orderNo, client.Page{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// readDetails looks up each order, with its license keys and its payments.
func (s *scene) readDetails(ctx context.Context, b *books) error {
	var mu sync.Mutex
	return rig.Each(ctx, len(b.orders), readers, func(ctx context.Context, i int) error {
		number := b.orders[i].OrderNo
		now, err := s.shop.desk.Orders.Get(ctx, number)
		payments, unlisted := s.payments(ctx, number)
		mu.Lock()
		defer mu.Unlock()
		b.details[number], b.payments[number] = now, payments
		return errors.Join(err, unlisted)
	})
}

// export runs licet orders export, and reads the file.
func (s *scene) export(ctx context.Context) ([]row, error) {
	name := filepath.Join(s.dir, "orders.csv")
	if _, err := s.Stage.Licet.Command(ctx, "orders", "export", "--restart", "--file", name, "--url",
		"http://"+s.Stage.Nodes[0].Address, "--api-key-file", filepath.Join(s.dir, "api.key")); err != nil {
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
	cash           int64    // what the shop has in the end, without fees
	payments       []string // references
	// fees are what Stripe keeps of payments, by the references of these and of the invoices that they paid, and fee is
	// their sum with the fees of disputes.
	fees map[string]int64
	fee  int64
	// invoices are the amounts of the further invoices of a subscription, by their ids, and invoiced is their sum.
	invoices map[string]int64
	invoiced int64
	until    time.Time // the end of the period that is paid for
	// seconds are the amounts of second payments, by their references. given is what went back of these, and of
	// invoices.
	seconds map[string]int64
	given   int64
	// dispute is the buyer's dispute; nil: there is none. What the shop has lost by a dispute of the order's own
	// payment is returned, and otherwise given.
	dispute *disputed
}

// further is the sum of the further invoices and of second payments.
func (m *money) further() (sum int64) {
	for _, amount := range m.seconds {
		sum += amount
	}
	return sum + m.invoiced
}

// kept is the order's own payment less its refunds and a lost dispute. A bank may hold it.
func (m *money) kept() int64 { return m.paid - m.returned }

// sent is what Stripe has sent back to the buyer.
func (m *money) sent() int64 { return m.returned + m.given - m.dispute.lost() }

// back reports whether all money of the order's own payment has gone back to the buyer, or had. That is final for the
// order: if the bank decides for the shop later, the licenses stay revoked.
func (m *money) back(b *buyer) bool { return m.paid > 0 && m.kept() == 0 || b.reversed }

// moneyOf adds up what Stripe and the shop have of each order.
func moneyOf(buyers []*buyer, b *books) map[string]*money {
	sums, of := map[string]*money{}, map[string]*buyer{}
	for _, one := range buyers {
		if one.order == "" {
			continue
		}
		m := &money{invoices: map[string]int64{}, seconds: map[string]int64{}, fees: map[string]int64{}}
		if one.outside != "" {
			m.paid, m.cash, m.payments = one.amount, one.amount, []string{one.outside}
		}
		sums[one.order], of[one.order] = m, one
	}
	for i := range b.stripe {
		e := &b.stripe[i]
		m := sums[e.OrderNo]
		if m == nil {
			continue // the audit names the entry
		}
		unit := of[e.OrderNo].price.stripe
		amount := e.Amount / unit
		m.cash += amount
		m.fee += e.Fee / unit
		if e.Kind == "charge" {
			m.fees[e.Payment] = e.Fee / unit
			if e.Invoice != "" {
				m.fees[e.Invoice] = e.Fee / unit
			}
		}
		further := m.seconds[e.Payment] > 0 || e.Invoice != "" && m.invoices[e.Invoice] > 0
		switch {
		case e.Kind == "dispute", e.Kind == "dispute_reversal":
			if m.dispute == nil {
				m.dispute = &disputed{further: further}
			}
			m.dispute.add(e, unit)
		case e.Kind != "charge" && further:
			m.given -= amount
		case e.Kind != "charge":
			m.returned -= amount
		case e.Invoice == "" && of[e.OrderNo].outside != "":
			m.seconds[e.Payment] += amount
		case e.Invoice != "" && m.paid > 0:
			m.invoices[e.Invoice] += amount
			m.invoiced += amount
		default:
			m.paid += amount
			m.payments = append(m.payments, e.Payment)
		}
	}
	for _, m := range sums {
		if m.dispute == nil {
			continue
		}
		switch m.dispute.state = b.disputes[m.dispute.id]; m.dispute.state {
		case "won", "lost":
		default:
			m.dispute.state = "open"
		}
		if m.dispute.further {
			m.given += m.dispute.lost()
		} else {
			m.returned += m.dispute.lost()
		}
	}
	for i := range b.stripe { // an invoice that the shop has lost pays for no period
		e := &b.stripe[i]
		m := sums[e.OrderNo]
		if m == nil || m.dispute.lost() > 0 && m.dispute.further && m.dispute.payment == e.Payment {
			continue
		}
		if e.Until.After(m.until) {
			m.until = e.Until
		}
	}
	return sums
}
