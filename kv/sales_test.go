package kv

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// salesYear is the span of the reports of these tests.
var salesYear = licensing.TimeRange{From: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC),
	To: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)}

// TestReportWhileOthersPay sums sales while payments are recorded through two nodes: each report has exactly the
// payments of its revision.
func TestReportWhileOthersPay(t *testing.T) {
	t.Parallel()
	l := newTrialLab(t)
	nodes := []*service.Service{l.node, l.nodeWith(rand.Reader, time.Now)}
	sizes := map[licensing.Owner]licensing.Size{}
	l.sized(sizes)
	const writers, each = 4, 25
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				order, _, err := nodes[w%2].CreateOrder(l.ctx(), labOwner, service.NewOrder{ProductID: "pro",
					Amount: int64(1 + w*each + i), Currency: []string{"USD", "EUR"}[i%2], Outside: true})
				if err == nil {
					_, _, err = nodes[i%2].RecordPayment(l.ctx(), labOwner, order.OrderNo, service.OutsidePayment{
						By: "key_1", Reference: order.OrderNo,
						PaidAt: salesYear.From.Add(time.Duration(w*each+i) * time.Hour)})
				}
				if err != nil {
					t.Errorf("pay: %v", err)
					return
				}
			}
		})
	}
	var ended atomic.Bool
	go func() { group.Wait(); ended.Store(true) }()
	reports := 0
	for last := false; !last; reports++ {
		last = ended.Load()
		r, err := nodes[reports%2].ReportSales(l.ctx(), labOwner,
			service.SalesRequest{Span: salesYear, Step: licensing.ByDay})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]licensing.Sales{}
		records := kvtest.Must(l.client.Get(l.ctx(), keyspace.OfOwner(labOwner, keyspace.PaymentsFamily),
			clientv3.WithPrefix(), clientv3.WithRev(r.Revision)))(t)
		for _, kv := range records.Kvs {
			p := kvtest.Must(layout.DecodePayment(kv.Value))(t).Payment
			sum := want[p.Currency]
			want[p.Currency] = licensing.Sales{Currency: p.Currency, Payments: sum.Payments + 1,
				Gross: sum.Gross + p.Amount}
		}
		totals := r.Totals()
		for _, total := range totals {
			if total != want[total.Currency] {
				t.Errorf("at revision %d the sum is %+v, want %+v", r.Revision, total, want[total.Currency])
			}
		}
		if len(totals) != len(want) {
			t.Errorf("at revision %d there are sums of %d currencies, want %d", r.Revision, len(totals), len(want))
		}
		if last && len(records.Kvs) != writers*each {
			t.Errorf("%d payments are recorded", len(records.Kvs))
		}
	}
	t.Logf("%d reports", reports)
	for _, other := range []licensing.Owner{{AccountID: "acct_la", Mode: labOwner.Mode},
		{AccountID: "acct_lab2", Mode: labOwner.Mode}, {AccountID: labOwner.AccountID, Mode: licensing.Live}} {
		r, err := l.node.ReportSales(l.ctx(), other, service.SalesRequest{Span: salesYear, Step: licensing.ByDay})
		if err != nil || len(r.Totals()) > 0 {
			t.Errorf("%v has %v, %v", other, r.Totals(), err)
		}
	}
	l.healthy("all paid")
	l.sized(sizes)
}

// plantSales writes sales of an owner straight into etcd, from a number on: one each second.
func plantSales(t *testing.T, owner licensing.Owner, from, to int) {
	t.Helper()
	var children, puts []clientv3.Op
	for i := from; i < to; i++ {
		var name [licensing.PaymentNameSize]byte
		binary.BigEndian.PutUint64(name[8:], uint64(i)*0x9e3779b97f4a7c15)
		entry := layout.SaleEntry(licensing.Ref{Kind: licensing.KindPayment, Owner: owner, ID: string(name[:])},
			&licensing.Payment{Amount: licensing.MaxAmount, Currency: "USD", ProductID: "pro",
				PaidAt: salesYear.From.Add(time.Duration(i) * time.Second)})
		puts = append(puts, clientv3.OpPut(entry.Key, entry.Value))
		for _, key := range keyspace.SkipKeys(entry.Key) {
			puts = append(puts, clientv3.OpPut(key, ""))
		}
		if len(puts) >= 60 || i == to-1 {
			children, puts = append(children, clientv3.OpTxn(nil, puts, nil)), nil
		}
		if len(children) >= 60 || i == to-1 {
			if _, err := server.Client.Txn(t.Context()).Then(children...).Commit(); err != nil {
				t.Fatal(err)
			}
			children = nil
		}
	}
}

// readSales reads all pages of an owner's sales into a report.
func readSales(t *testing.T, s *Store, owner licensing.Owner, page store.SalesPage, pages func()) (
	*licensing.SalesReport, int, error,
) {
	t.Helper()
	r, unreadable := licensing.NewSalesReport(licensing.ByDay, ""), 0
	for {
		read, err := s.ReadSales(t.Context(), owner, page)
		if err != nil {
			return r, unreadable, err
		}
		if len(read.Sales) > salesPage {
			t.Fatalf("a page has %d sales", len(read.Sales))
		}
		for i := range read.Sales {
			if err := r.Add(&read.Sales[i]); err != nil {
				return r, unreadable, err
			}
		}
		unreadable += read.Unreadable
		pages()
		if page.After, page.Revision = read.Next, read.Revision; read.Next == "" {
			return r, unreadable, nil
		}
	}
}

// TestReportLimit sums as many sales as a report may have, exactly, and refuses one more. The work of etcd for a page
// does not grow with their number.
func TestReportLimit(t *testing.T) {
	depth.NotRaced(t)
	s, kv := workStore(t)
	owner := licensing.Owner{AccountID: "acct_" + rand.Text(), Mode: licensing.Live}
	plantSales(t, owner, 0, licensing.MaxReportSales)
	var cost pageWork
	kv.take()
	started := time.Now()
	r, unreadable, err := readSales(t, s, owner, store.SalesPage{Span: salesYear}, func() { cost.add(kv.take(), 1) })
	if err != nil || unreadable > 0 {
		t.Fatal(err, unreadable)
	}
	t.Logf("%v, in %v", &cost, time.Since(started))
	if total := r.Totals()[0]; total.Payments != licensing.MaxReportSales ||
		total.Gross != licensing.MaxReportSales*licensing.MaxAmount {
		t.Errorf("the sum is %+v", total)
	}
	if cost.most.counted > 6000 || cost.pages > 200 {
		t.Errorf("%d pages, and etcd counted %d keys for one", cost.pages, cost.most.counted)
	}
	for i, span := range []licensing.TimeRange{
		{From: salesYear.From, To: salesYear.From.Add(time.Second)},
		{From: salesYear.From.Add(7 * time.Second), To: salesYear.From.Add(5000 * time.Second)},
		{From: salesYear.To.Add(-time.Hour), To: salesYear.To},
	} {
		r, _, err := readSales(t, s, owner, store.SalesPage{Span: span}, func() {})
		var got int64
		if totals := r.Totals(); len(totals) > 0 {
			got = totals[0].Payments
		}
		if want := []int64{1, 4993, 0}[i]; err != nil || got != want {
			t.Errorf("%v has %d sales, want %d; %v", span, got, want, err)
		}
	}
	plantSales(t, owner, licensing.MaxReportSales, licensing.MaxReportSales+1)
	_, _, err = readSales(t, s, owner, store.SalesPage{Span: salesYear}, func() {})
	if licensing.ReasonOf(err) != licensing.ReasonInvalidField || !strings.Contains(fmt.Sprint(
		err.(*licensing.Error).Fields), "licet orders export") {
		t.Errorf("one sale more: %v", err)
	}
}

// TestReportOfFarTooMany: a span with far too many sales is refused before they are read.
func TestReportOfFarTooMany(t *testing.T) {
	s, kv := workStore(t)
	owner := licensing.Owner{AccountID: "acct_" + rand.Text(), Mode: licensing.Live}
	listing := keyspace.InSlot(licensing.SlotOf(owner), keyspace.SalesOf(owner))
	var puts []clientv3.Op
	for i := range salesSure + 1 {
		at := keyspace.TimeInKey(salesYear.From.Add(time.Duration(i) * time.Second))
		puts = append(puts, clientv3.OpPut(keyspace.SkipKey(1, listing)+at+"0123456789abcdef", ""))
		if len(puts) == 100 || i == salesSure {
			if _, err := server.Client.Txn(t.Context()).Then(puts...).Commit(); err != nil {
				t.Fatal(err)
			}
			puts = nil
		}
	}
	kv.take()
	_, err := s.ReadSales(t.Context(), owner, store.SalesPage{Span: salesYear})
	if licensing.ReasonOf(err) != licensing.ReasonInvalidField || kv.take().requests > 1 {
		t.Errorf("far too many sales: %v", err)
	}
}

// TestUnreadableSale: a damaged sale counts as unreadable, and so does a sale of a kind that a newer build has added.
func TestUnreadableSale(t *testing.T) {
	s := openStore(t)
	owner := licensing.Owner{AccountID: "acct_" + rand.Text(), Mode: licensing.Live}
	plantSales(t, owner, 0, 5)
	listing := keyspace.InSlot(licensing.SlotOf(owner), keyspace.SalesOf(owner))
	kvs := kvtest.Must(server.Client.Get(t.Context(), listing, clientv3.WithPrefix()))(t).Kvs
	newer := append([]byte{kvs[1].Value[0], 1<<3 | 2, 7}, "dispute"...)
	for i, value := range []string{"?", string(append(newer, kvs[1].Value[1:]...))} {
		kvtest.Must(server.Client.Put(t.Context(), string(kvs[i].Key), value))(t)
	}
	r, unreadable, err := readSales(t, s, owner, store.SalesPage{Span: salesYear}, func() {})
	if err != nil || unreadable != 2 || r.Totals()[0].Payments != 3 {
		t.Errorf("%d are unreadable, and the sum is %+v; %v", unreadable, r.Totals(), err)
	}
}

// TestNoteBooks: the first node that keeps books notes since when.
func TestNoteBooks(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	read := func() time.Time {
		return kvtest.Must(l.store.ReadSales(l.ctx(), labOwner, store.SalesPage{Span: salesYear}))(t).Complete
	}
	if at := read(); !at.IsZero() {
		t.Errorf("a store that no node has noted is complete from %v on", at)
	}
	for i := range 2 {
		if err := l.store.NoteBooks(l.ctx(), kvtest.Time.Add(time.Duration(i)*time.Hour)); err != nil {
			t.Fatal(err)
		}
		if at := read(); !at.Equal(kvtest.Time) {
			t.Errorf("the books are complete from %v on, want %v", at, kvtest.Time)
		}
	}
}
