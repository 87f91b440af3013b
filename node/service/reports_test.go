package service_test

import (
	"context"
	"testing"
	"time"

	"licet/internal/nodetest"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// slowSales is a store whose sales wait until they are let go.
type slowSales struct {
	store.Store
	began chan struct{}
	goOn  chan struct{}
}

func (s slowSales) ReadSales(
	ctx context.Context, owner licensing.Owner, page store.SalesPage,
) (store.SalesRead, error) {
	s.began <- struct{}{}
	<-s.goOn
	return s.Store.ReadSales(ctx, owner, page)
}

// TestOneReportAtATime: an owner makes one report at a time, and others make theirs meanwhile, up to as many as the
// node makes at once. A caller who has given up ends no other caller's report.
func TestOneReportAtATime(t *testing.T) {
	const atOnce = 4
	db := slowSales{Store: nodetest.OpenStore(t), began: make(chan struct{}, 2*atOnce), goOn: make(chan struct{})}
	n := nodetest.New(t, db)
	ask := service.SalesRequest{Step: licensing.ByDay, Span: licensing.TimeRange{
		From: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC), To: time.Date(2031, 2, 1, 0, 0, 0, 0, time.UTC)}}
	report := func(owner licensing.Owner) error {
		_, err := n.ReportSales(nodetest.Context(t), owner, ask)
		return err
	}
	owners := make([]licensing.Owner, atOnce)
	ended := make(chan error, atOnce)
	for i := range owners {
		owners[i] = nodetest.NewOwner(licensing.Test)
		go func() { ended <- report(owners[i]) }()
		<-db.began
		nodetest.WantError(t, report(owners[i]), licensing.ErrOverloaded)
	}
	other := nodetest.NewOwner(licensing.Test)
	nodetest.WantError(t, report(other), licensing.ErrOverloaded)
	close(db.goOn)
	for range owners {
		nodetest.WantError(t, <-ended, nil)
	}
	nodetest.WantError(t, report(owners[0]), nil)
	nodetest.WantError(t, report(other), nil)
}

// TestReportReadsCount: what a report reads counts for its owner at once, and earlier reads refuse a report only before
// it begins.
func TestReportReadsCount(t *testing.T) {
	n := nodetest.New(t, nodetest.OpenStore(t))
	owner := nodetest.NewOwner(licensing.Test)
	order, _, err := n.CreateOrder(nodetest.Context(t), owner,
		service.NewOrder{ProductID: "p", Amount: 5, Currency: "USD", Outside: true})
	if err == nil {
		_, _, err = n.RecordPayment(nodetest.Context(t), owner, order.OrderNo,
			service.OutsidePayment{Reference: "INV-1"})
	}
	nodetest.WantError(t, err, nil)
	ask := service.SalesRequest{Step: licensing.ByDay,
		Span: licensing.TimeRange{From: order.CreatedAt.Add(-time.Hour), To: order.CreatedAt.Add(24 * time.Hour)}}
	bytes := 0
	var refusal error
	ctx := store.CountReads(nodetest.Context(t), func(more int) {
		bytes += more
		refusal = licensing.ErrOverloaded // what is read is too much already
	}, func() error { return refusal })
	r, err := n.ReportSales(ctx, owner, ask)
	nodetest.WantError(t, err, nil)
	if totals := r.Totals(); len(totals) != 1 || totals[0].Gross != 5 || totals[0].Payments != 1 {
		t.Errorf("the report has %+v", totals)
	}
	if bytes == 0 {
		t.Error("the reads of a report do not count")
	}
	_, err = n.ReportSales(ctx, owner, ask)
	nodetest.WantError(t, err, licensing.ErrOverloaded)
}
