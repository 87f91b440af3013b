package licensing

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Limits of a report of sales.
const (
	// MaxReportDays is how many days a report may cover: a leap year.
	MaxReportDays = 366
	// MaxReportSales is how many payments and refunds a report may sum.
	MaxReportSales = 100_000
	// MaxReportCurrencies is how many currencies a report may have.
	MaxReportCurrencies = 32
)

// SaleKind is what happened to the money.
type SaleKind string

// The kinds of sales.
const (
	SalePaid     SaleKind = ""
	SaleRefunded SaleKind = "refund"
)

// Known reports whether this build knows the kind.
func (k SaleKind) Known() bool { return k == SalePaid || k == SaleRefunded }

// Sale is what a report needs of a payment or a refund.
type Sale struct {
	At        time.Time // when the buyer paid, or got the money back
	Kind      SaleKind
	Amount    int64 // in the currency's minor unit, never negative
	Currency  string
	ProductID string
}

// Sale returns what reports show of a payment or a refund; ok is false if they show nothing, as of a refund that is not
// made. A lost dispute is shown as a refund of what counts of it.
func (p *Payment) Sale() (s Sale, ok bool) {
	s = Sale{At: p.PaidAt, Amount: p.Amount, Currency: p.Currency, ProductID: p.ProductID}
	switch p.Kind {
	case KindOfRefund, KindOfInvoiceRefund:
		s.Kind = SaleRefunded
	case KindOfUnmatched:
		return s, false
	case KindOfDispute:
		s.Kind, s.Amount = SaleRefunded, p.counts()
		return s, p.ProductID != "" && s.Amount > 0
	}
	return s, p.ProductID != "" && p.State == PaymentDone
}

// ReportStep is the length of the periods of a report.
type ReportStep string

// The steps of reports. Days and months are those of UTC.
const (
	ByDay   ReportStep = "day"
	ByMonth ReportStep = "month"
)

// ReportSteps lists the steps of reports.
func ReportSteps() []ReportStep { return []ReportStep{ByDay, ByMonth} }

// period returns the name of the day or month that has a time.
func (s ReportStep) period(at time.Time) string {
	if s == ByMonth {
		return at.UTC().Format("2006-01")
	}
	return at.UTC().Format(time.DateOnly)
}

// Sales is the sum of sales in one currency.
type Sales struct {
	Currency string
	Payments int64
	Refunds  int64
	Gross    int64 // what buyers have paid, in the currency's minor unit
	Refunded int64 // what went back to them
}

// Net returns Gross less Refunded.
func (s *Sales) Net() int64 { return s.Gross - s.Refunded }

// SalesPeriod is the sum of the sales of a day or a month in one currency.
type SalesPeriod struct {
	Period string // such as 2031-01-31 or 2031-01
	Sales
}

// SalesReport sums sales by currency, and by day or month. Its size is bounded by the Max constants of reports. Make it
// with [NewSalesReport].
type SalesReport struct {
	step      ReportStep
	productID string
	seen      int
	totals    map[string]*Sales
	periods   map[[2]string]*Sales // by day or month, and currency
}

// NewSalesReport returns a report without sales. An empty productID means all products.
func NewSalesReport(step ReportStep, productID string) *SalesReport {
	return &SalesReport{step, productID, 0, map[string]*Sales{}, map[[2]string]*Sales{}}
}

// Add adds a sale. It fails if the report then had more sales or currencies than a report may have. Sales of other
// products count toward the limit of sales, and toward nothing else.
func (r *SalesReport) Add(s *Sale) error {
	if r.seen++; r.seen > MaxReportSales {
		return TooManySales()
	}
	if r.productID != "" && r.productID != s.ProductID {
		return nil
	}
	total := r.totals[s.Currency]
	if total == nil {
		if len(r.totals) == MaxReportCurrencies {
			return reportLimit("product_id", fmt.Sprintf("the report has more than %d currencies", MaxReportCurrencies))
		}
		total = &Sales{Currency: s.Currency}
		r.totals[s.Currency] = total
	}
	at := [2]string{r.step.period(s.At), s.Currency}
	span := r.periods[at]
	if span == nil {
		span = &Sales{Currency: s.Currency}
		r.periods[at] = span
	}
	for _, sum := range []*Sales{total, span} {
		count, amount := &sum.Payments, &sum.Gross
		if s.Kind == SaleRefunded {
			count, amount = &sum.Refunds, &sum.Refunded
		}
		if s.Amount < 0 || *amount+s.Amount < 0 { // MaxReportSales times MaxAmount is far below
			return fmt.Errorf("%w: a sum of sales exceeds 64 bits", ErrInternal)
		}
		*count++
		*amount += s.Amount
	}
	return nil
}

// TooManySales is the refusal of a report of more than MaxReportSales payments and refunds.
func TooManySales() error {
	return reportLimit("to", fmt.Sprintf("from and to span more than %d payments and refunds", MaxReportSales))
}

func reportLimit(field, problem string) error {
	return InvalidField(field, problem+": ask for a shorter span, or export the orders with licet orders export")
}

// Totals returns the sums of the whole report, by currency.
func (r *SalesReport) Totals() []Sales {
	totals := make([]Sales, 0, len(r.totals))
	for _, sum := range r.totals {
		totals = append(totals, *sum)
	}
	slices.SortFunc(totals, func(a, b Sales) int { return cmp.Compare(a.Currency, b.Currency) })
	return totals
}

// Periods returns the sums of the days or months that have sales, the earliest first, and by currency.
func (r *SalesReport) Periods() []SalesPeriod {
	periods := make([]SalesPeriod, 0, len(r.periods))
	for at, sum := range r.periods {
		periods = append(periods, SalesPeriod{at[0], *sum})
	}
	slices.SortFunc(periods, func(a, b SalesPeriod) int {
		return cmp.Or(cmp.Compare(a.Period, b.Period), cmp.Compare(a.Currency, b.Currency))
	})
	return periods
}
