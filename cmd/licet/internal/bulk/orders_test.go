package bulk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/client"
	"licet/cmd/licet/internal/bulk"
)

// sold creates and pays an order.
func sold(t *testing.T, c *client.Client, reference string, order client.NewOrder) *client.Order {
	t.Helper()
	order.ProductID, order.PaymentProvider = "editor", "outside"
	made, err := c.Orders.Create(t.Context(), order)
	if err == nil {
		made, err = c.Orders.RecordPayment(t.Context(), made.OrderNo, client.OutsidePayment{Reference: reference})
	}
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// TestExportOrders: amounts are exact in the digits of each currency, and no text is a formula.
func TestExportOrders(t *testing.T) {
	c := shop(t)
	unpaid, err := c.Orders.Create(t.Context(), client.NewOrder{ProductID: "editor", Amount: 5, Currency: "USD"})
	if err != nil {
		t.Fatal(err)
	}
	dollars := sold(t, c, "=1+1", client.NewOrder{Amount: 4905, Currency: "USD", BuyerEmail: "anna@example.com"})
	yen := sold(t, c, "INV-2", client.NewOrder{Amount: 1_000_000_000_000, Currency: "JPY", Quantity: 40})
	dinars := sold(t, c, "INV-3", client.NewOrder{Amount: 7, Currency: "KWD"})
	back, err := c.Orders.Refund(t.Context(), dinars.OrderNo, "")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	rows, err := bulk.ExportOrders(c).To(t.Context(), &out)
	if err != nil || rows != 4 {
		t.Fatal(rows, err)
	}
	const form = "2006-01-02T15:04:05.000Z"
	want := strings.Join([]string{
		strings.Join(bulk.OrderColumns(), ","),
		fmt.Sprintf("%s,refunded,editor,,%s,%s,%s,KWD,0.007,0.007,,outside,INV-3,1", back.OrderNo,
			back.CreatedAt.UTC().Format(form), back.PaidAt.UTC().Format(form), back.RefundedAt.UTC().Format(form)),
		fmt.Sprintf("%s,paid,editor,,%s,%s,,JPY,1000000000000,0,,outside,INV-2,40", yen.OrderNo,
			yen.CreatedAt.UTC().Format(form), yen.PaidAt.UTC().Format(form)),
		fmt.Sprintf("%s,paid,editor,anna@example.com,%s,%s,,USD,49.05,0.00,,outside,'=1+1,1", dollars.OrderNo,
			dollars.CreatedAt.UTC().Format(form), dollars.PaidAt.UTC().Format(form)),
		fmt.Sprintf("%s,unpaid,editor,,%s,,,USD,0.00,0.00,,,,1", unpaid.OrderNo,
			unpaid.CreatedAt.UTC().Format(form)), "",
	}, "\n")
	if out.String() != want {
		t.Errorf("%s\nwant\n%s", out.String(), want)
	}
}

// TestExportOrdersGoesOn breaks an export off, and continues it: each order is in the file once.
func TestExportOrdersGoesOn(t *testing.T) {
	c := shop(t)
	want := map[string]bool{}
	var period client.Period
	for range 230 {
		order, err := c.Orders.Create(t.Context(), client.NewOrder{ProductID: "editor", Amount: 5, Currency: "USD"})
		if err != nil {
			t.Fatal(err)
		}
		want[order.OrderNo] = true
		if period.From.IsZero() {
			period = client.Period{From: order.CreatedAt, To: order.CreatedAt.Add(24 * time.Hour)}
		}
	}
	path := filepath.Join(t.TempDir(), "orders.csv")
	ctx, cancel := context.WithCancel(t.Context())
	e := bulk.ExportOrders(c)
	e.Filter.Created, e.Progress = period, func(int64) { cancel() }
	if sum, err := e.ToFile(ctx, path, false); !errors.Is(err, context.Canceled) || sum.Rows != 100 {
		t.Fatal(sum, err)
	}
	_, err := bulk.ExportOrders(c).ToFile(t.Context(), path, false)
	wantError(t, err, "other filters", "--restart")
	_, err = newExport(c).ToFile(t.Context(), path, false)
	wantError(t, err, "do not match", "--restart")
	e = bulk.ExportOrders(c)
	e.Filter.Created = period
	if sum, err := e.ToFile(t.Context(), path, false); err != nil || sum.Rows != 230 || sum.Before != 100 {
		t.Fatal(sum, err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range readCSV(t, string(text)) {
		if !want[row["order_no"]] {
			t.Errorf("%s is in the export twice, or was not ordered", row["order_no"])
		}
		delete(want, row["order_no"])
	}
	if len(want) > 0 {
		t.Errorf("%d orders are not in the export", len(want))
	}
}
