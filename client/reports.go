package client

import (
	"context"
	"time"
)

// ReportService makes reports.
type ReportService struct{ client *Client }

// The lengths of the periods of a report.
const (
	ByDay   = "day"
	ByMonth = "month"
)

// SalesReportOf says which payments and refunds a report sums. Period is required, and covers at most 366 days.
type SalesReportOf struct {
	Period    Period
	By        string // ByDay or ByMonth; empty: ByMonth
	ProductID string // empty: all products
}

// SalesReport sums payments and refunds by currency, all as they were at one revision of the store.
type SalesReport struct {
	From      time.Time    `json:"from"`
	To        time.Time    `json:"to"`
	By        string       `json:"by"`
	ProductID string       `json:"product_id"`
	Totals    []SalesTotal `json:"totals"` // of the whole report, by currency
	// Periods has the days or months with sales, the earliest first, and by currency.
	Periods  []SalesPeriod `json:"periods"`
	Revision int64         `json:"revision"` // of the store, at which all was read
	AsOf     time.Time     `json:"as_of"`    // when that was
	// CompleteFrom is the time from which on the service counts all payments in reports. It may lack payments that were
	// recorded before. Zero: not known.
	CompleteFrom time.Time `json:"complete_from"`
	Unreadable   int       `json:"unreadable"` // payments and refunds that the service can't read: the sums lack them
	AccountID    string    `json:"account_id"`
	Mode         string    `json:"mode"`
}

// SalesTotal is the sum of payments and refunds in one currency. The amounts are in the currency's minor unit.
type SalesTotal struct {
	Currency string `json:"currency"`
	Payments int64  `json:"payments"` // how many
	Refunds  int64  `json:"refunds"`  // how many
	Gross    int64  `json:"gross"`    // what buyers have paid
	Refunded int64  `json:"refunded"` // what went back to them
	Net      int64  `json:"net"`      // Gross without Refunded
}

// SalesPeriod is the sum of a day or a month of UTC in one currency.
type SalesPeriod struct {
	Period string `json:"period"` // such as 2031-01-31 or 2031-01
	SalesTotal
}

// Sales sums payments and refunds. A node makes one report of an account and mode at a time. It refuses a report
// of more than 100,000 payments and refunds: ask for a shorter period.
func (s *ReportService) Sales(ctx context.Context, of SalesReportOf, options ...CallOption) (*SalesReport, error) {
	query := Page{}.query("from", instant(of.Period.From), "to", instant(of.Period.To), "by", of.By,
		"product_id", of.ProductID)
	r := new(SalesReport)
	if err := s.client.do(ctx, "GET /v1/reports/sales", nil, query, nil, r, options); err != nil {
		return nil, err
	}
	return r, nil
}
