package service

import (
	"context"
	"time"

	"licet/internal/backoff"
	"licet/licensing"
	"licet/node/store"
)

const (
	// reportsAtOnce bounds the reports that the node makes at the same time. A report of licensing.MaxReportSales takes
	// some seconds. An owner makes one at a time.
	reportsAtOnce = 4
	// reportPause is the pause after each page of a report, so that other reads go between.
	reportPause = 2 * time.Millisecond
)

// SalesRequest asks for a report of sales. The caller has validated the fields.
type SalesRequest struct {
	Span      licensing.TimeRange // of licensing.MaxReportDays at most
	Step      licensing.ReportStep
	ProductID string // empty: all products
}

// SalesReport is a report of sales, as they were at one revision of the store.
type SalesReport struct {
	*licensing.SalesReport
	Revision   int64
	AsOf       time.Time // at this revision or a little before
	Complete   time.Time // see store.SalesRead
	Unreadable int       // see store.SalesRead
}

// errReportUnderWay refuses a report while the node makes another one for the owner, or as many as it may at once.
var errReportUnderWay = &licensing.Error{
	Reason:  licensing.ReasonOverloaded,
	Message: "another report of this account and mode is under way, or too many of others: try again when it has ended",
}

// ReportSales sums an owner's payments and refunds. All pages are read at the revision of the first page. Each page
// takes an admission place and enters the gate of lists, like a page of a list. What is read counts toward the owner's
// limits at once, but does not stop the report: only a report that has not begun is refused because of earlier reads.
func (p *Payments) ReportSales(ctx context.Context, owner licensing.Owner, in SalesRequest) (r SalesReport, err error) {
	if !p.reports.TryEnter(owner) {
		p.reportsShed.Inc()
		return r, errReportUnderWay
	}
	defer p.reports.Leave(owner)
	reads := store.ReadsOf(ctx)
	if err := reads.Refusal(); err != nil {
		return r, err
	}
	ctx = store.CountReads(ctx, reads.Note, func() error { return nil })
	r.SalesReport, r.AsOf = licensing.NewSalesReport(in.Step, in.ProductID), p.engine.Now()
	for page := (store.SalesPage{Span: in.Span}); ; {
		read, err := admittedToList(ctx, p.core, owner, func() (store.SalesRead, error) {
			return p.cfg.Queries.ReadSales(ctx, owner, page)
		})
		if err != nil {
			return r, err
		}
		for i := range read.Sales {
			if err := r.Add(&read.Sales[i]); err != nil {
				return r, err
			}
		}
		r.Unreadable += read.Unreadable
		if page.Revision == 0 {
			r.Revision, r.Complete = read.Revision, read.Complete
		}
		page.After, page.Revision = read.Next, read.Revision
		if read.Next == "" {
			return r, nil
		}
		if !backoff.Sleep(ctx, reportPause) {
			return r, licensing.ErrUnavailable
		}
	}
}
