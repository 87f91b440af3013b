package licensing_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"licet/licensing"
)

func TestSalesReport(t *testing.T) {
	at := func(day int) time.Time { return time.Date(2031, 1, day, 23, 59, 59, 999e6, time.UTC) }
	sales := []licensing.Sale{
		{At: at(1), Amount: 4900, Currency: "USD", ProductID: "editor"},
		{At: at(1), Amount: 1, Currency: "USD", ProductID: "editor"},
		{At: at(2), Amount: 4901, Currency: "USD", ProductID: "editor", Kind: licensing.SaleRefunded},
		{At: at(2), Amount: 500, Currency: "JPY", ProductID: "viewer"},
		{At: at(32), Amount: licensing.MaxAmount, Currency: "USD", ProductID: "editor"},
	}
	for _, c := range []struct {
		step    licensing.ReportStep
		product string
		want    []string
	}{
		{licensing.ByDay, "", []string{"2031-01-01 USD 2 0 4901 0 4901", "2031-01-02 JPY 1 0 500 0 500",
			"2031-01-02 USD 0 1 0 4901 -4901", "2031-02-01 USD 1 0 1000000000000 0 1000000000000",
			"JPY 1 0 500 0 500", "USD 3 1 1000000004901 4901 1000000000000"}},
		{licensing.ByMonth, "", []string{"2031-01 JPY 1 0 500 0 500", "2031-01 USD 2 1 4901 4901 0",
			"2031-02 USD 1 0 1000000000000 0 1000000000000",
			"JPY 1 0 500 0 500", "USD 3 1 1000000004901 4901 1000000000000"}},
		{licensing.ByMonth, "viewer", []string{"2031-01 JPY 1 0 500 0 500", "JPY 1 0 500 0 500"}},
		{licensing.ByMonth, "other", nil},
	} {
		r := licensing.NewSalesReport(c.step, c.product)
		for i := range sales {
			if err := r.Add(&sales[i]); err != nil {
				t.Fatal(err)
			}
		}
		var got []string
		row := func(s *licensing.Sales) string {
			return fmt.Sprint(s.Currency, " ", s.Payments, s.Refunds, s.Gross, s.Refunded, s.Net())
		}
		for _, p := range r.Periods() {
			got = append(got, p.Period+" "+row(&p.Sales))
		}
		for _, total := range r.Totals() {
			got = append(got, row(&total))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("by %s of %q: %q, want %q", c.step, c.product, got, c.want)
		}
	}
}

// TestSalesReportLimits: a report refuses what is beyond its limits, and never overflows.
func TestSalesReportLimits(t *testing.T) {
	refused := func(what string, err error) {
		t.Helper()
		if licensing.ReasonOf(err) != licensing.ReasonInvalidField ||
			!strings.Contains(err.(*licensing.Error).Fields[0].Problem, "licet orders export") {
			t.Errorf("%s: %v", what, err)
		}
	}
	many := licensing.NewSalesReport(licensing.ByDay, "other")
	sale := licensing.Sale{At: noon, Amount: licensing.MaxAmount, Currency: "USD", ProductID: "p"}
	full := licensing.NewSalesReport(licensing.ByDay, "p")
	for range licensing.MaxReportSales {
		if err := many.Add(&sale); err != nil {
			t.Fatal(err)
		}
		if err := full.Add(&sale); err != nil {
			t.Fatal(err)
		}
	}
	refused("sales of other products", many.Add(&sale))
	refused("sales", full.Add(&sale))
	if total := full.Totals()[0].Gross; total != licensing.MaxReportSales*licensing.MaxAmount {
		t.Errorf("the sum is %d", total)
	}

	currencies := licensing.NewSalesReport(licensing.ByDay, "")
	for i := range licensing.MaxReportCurrencies {
		if err := currencies.Add(&licensing.Sale{At: noon, Currency: fmt.Sprint(i), ProductID: "p"}); err != nil {
			t.Fatal(err)
		}
	}
	refused("currencies", currencies.Add(&sale))

	huge := licensing.NewSalesReport(licensing.ByDay, "")
	sale.Amount = math.MaxInt64
	if err := huge.Add(&sale); err != nil {
		t.Fatal(err)
	}
	if err := huge.Add(&sale); licensing.ReasonOf(err) != licensing.ReasonInternal {
		t.Errorf("a sum beyond 64 bits: %v", err)
	}
}
