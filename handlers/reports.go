package handlers

import (
	"context"
	"fmt"
	"time"

	"licet/licensing"
	"licet/node/service"
)

// reportRoutes are the functions of the routes of reports.
type reportRoutes struct{ *Server }

// salesQuery asks for a report of sales.
type salesQuery struct {
	From      param `query:"from"`
	To        param `query:"to"`
	By        param `query:"by"`
	ProductID param `query:"product_id"`

	ask service.SalesRequest
}

func (q *salesQuery) check(c *checks) {
	span := &q.ask.Span
	span.From, span.To = c.reportEnd("from", q.From), c.reportEnd("to", q.To)
	switch days := 24 * time.Hour * licensing.MaxReportDays; {
	case span.From.IsZero() || span.To.IsZero():
	case !span.From.Before(span.To):
		c.add("to", "must be later than from")
	case span.To.Sub(span.From) > days:
		c.add("to", fmt.Sprintf("must be at most %d days later than from: ask for a shorter span, or export the "+
			"orders with licet orders export", licensing.MaxReportDays))
	}
	var of pageQuery
	of.productID(c, q.ProductID)
	of.oneOf(c, "by", q.By, words(licensing.ReportSteps()))
	q.ask.Step, q.ask.ProductID = licensing.ByMonth, q.ProductID.value
	if q.By.given {
		q.ask.Step = licensing.ReportStep(q.By.value)
	}
}

// reportEnd checks an end of the span of a report.
func (c *checks) reportEnd(field string, in param) time.Time {
	at := c.momentOrDay(field, text(in))
	if c.limits != nil {
		limits := c.limits[field]
		limits.Required = true
		c.limits[field] = limits
	} else if !in.given {
		c.add(field, problemRequired)
	}
	return at
}

// salesReport is the sum of payments and refunds in a span of time.
type salesReport struct {
	From         timestamp            `json:"from"`
	To           timestamp            `json:"to"`
	By           licensing.ReportStep `json:"by"`
	ProductID    *string              `json:"product_id"`
	Totals       []salesTotal         `json:"totals"`
	Periods      []salesPeriod        `json:"periods"`
	Revision     int64                `json:"revision"`
	AsOf         timestamp            `json:"as_of"`
	CompleteFrom timestamp            `json:"complete_from"`
	Unreadable   int                  `json:"unreadable"`
	AccountID    string               `json:"account_id"`
	Mode         licensing.Mode       `json:"mode"`
}

// salesTotal is the sum of all payments and refunds in one currency.
type salesTotal struct {
	Currency string `json:"currency"`
	Payments int64  `json:"payments"`
	Refunds  int64  `json:"refunds"`
	Gross    int64  `json:"gross"`
	Refunded int64  `json:"refunded"`
	Net      int64  `json:"net"`
}

// salesPeriod is the sum of the payments and refunds of a day or a month in one currency.
type salesPeriod struct {
	Period string `json:"period"`
	salesTotal
}

func salesTotalAnswer(s *licensing.Sales) salesTotal {
	return salesTotal{s.Currency, s.Payments, s.Refunds, s.Gross, s.Refunded, s.Net()}
}

// reportSales sums the caller's payments and refunds.
func (s reportRoutes) reportSales(ctx context.Context, c *call, q salesQuery) (salesReport, error) {
	r, err := s.cfg.Node.ReportSales(ctx, c.owner(), q.ask)
	if err != nil {
		return salesReport{}, err
	}
	return salesReport{
		From: timestamp(q.ask.Span.From), To: timestamp(q.ask.Span.To), By: q.ask.Step,
		ProductID: orNull(q.ask.ProductID),
		Totals:    answers(r.Totals(), salesTotalAnswer),
		Periods: answers(r.Periods(), func(p *licensing.SalesPeriod) salesPeriod {
			return salesPeriod{p.Period, salesTotalAnswer(&p.Sales)}
		}),
		Revision: r.Revision, AsOf: timestamp(r.AsOf), CompleteFrom: timestamp(r.Complete), Unreadable: r.Unreadable,
		AccountID: c.owner().AccountID, Mode: c.owner().Mode,
	}, nil
}
