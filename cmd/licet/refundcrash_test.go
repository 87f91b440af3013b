package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/internal/etcdtest"
	"licet/kv"
)

// till remembers the responses about a shop's orders.
type till struct {
	mu      sync.Mutex
	orders  map[string]bool   // the orders that were created
	final   map[string]string // of each order the last status that is for good
	refunds map[string]bool   // asked for, whatever was answered
}

func (l *till) note(orderNo, status string, refund bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.orders[orderNo] = true
	if status != "" {
		l.final[orderNo] = status
	}
	l.refunds[orderNo] = l.refunds[orderNo] || refund
}

func (l *till) count() (orders, refunded int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, status := range l.final {
		if status == "refunded" {
			refunded++
		}
	}
	return len(l.orders), refunded
}

// walk is the life of one order: it is paid or canceled, or one after the other, and
// most that are paid are refunded. It ends where an answer is missing.
func (l *till) walk(ctx context.Context, a api) error {
	made, err := demand(201)(a.send(ctx, "POST", "/v1/orders", `{"product_id":"editor","amount":100,"currency":"EUR"}`))
	if err != nil {
		return err
	}
	orderNo := made.Data.text("order_no")
	l.note(orderNo, "", false)
	canceled := rand.IntN(4) == 0
	if canceled {
		if _, err := demand(200)(a.send(ctx, "POST", "/v1/orders/"+orderNo+"/cancel", "")); err != nil {
			return err
		}
		if rand.IntN(4) == 0 {
			return nil
		}
	}
	if _, err := demand(200)(a.pay(ctx, orderNo)); err != nil {
		return err
	}
	if canceled {
		l.note(orderNo, "refunded", false)
		return nil
	}
	l.note(orderNo, "paid", false)
	if rand.IntN(4) == 0 {
		return nil
	}
	l.note(orderNo, "", true)
	refunded, err := demand(200)(a.changeOrder(ctx, orderNo+"/refund", orderNo))
	if err == nil {
		l.note(orderNo, refunded.Data.text("status"), false)
	}
	return err
}

// changeOrder changes an order, under an Idempotency-Key where one is given.
func (a api) changeOrder(ctx context.Context, path, key string) (reply, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/orders/"+path, http.NoBody)
	if err != nil {
		return reply{}, err
	}
	request.Header.Set("Authorization", "Bearer "+a.key)
	if rand.IntN(2) == 0 {
		request.Header.Set("Idempotency-Key", key)
	}
	return a.do(request)
}

// TestRefundsSurviveKills kills two nodes in turn while orders are paid, canceled and
// refunded at a bank that outlives them. In the end nothing is paid without a license
// or a refund, nothing was refunded twice, and both books agree.
func TestRefundsSurviveKills(t *testing.T) {
	t.Parallel()
	kills, ordersPerKill := depth.Of(4, 8), depth.Of(30, 60)
	bank := newBank(t)
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServeAs(t, []string{runWithBank + "=" + bank.URL}, "--etcd-endpoints", endpoints)
		p.key = key
		return p
	}
	nodes := []*process{start(), start()}
	f, all := newFleet(key, nodes...)
	book := &till{orders: map[string]bool{}, final: map[string]string{}, refunds: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, workers)
	for range workers {
		go func() {
			for ctx.Err() == nil {
				err := book.walk(ctx, all)
				if err != nil && !refusal(err) && !providerRefusal(err) && !brokenConnection(err) && ctx.Err() == nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for kill := range kills {
		orders, _ := book.count()
		enough := orders + ordersPerKill + rand.IntN(ordersPerKill)
		waitFor(t, func() bool { n, _ := book.count(); return n >= enough || len(done) > 0 })
		node := nodes[kill%2]
		node.kill()
		nodes[kill%2] = start()
		f.replace(node, nodes[kill%2])
	}
	cancel()
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	book.complete(t, all, bank)
	book.verify(t, all, bank)
	verified := runLicet(t, "store", "verify", "--etcd-endpoints", endpoints)
	if verified.code != exitOK {
		t.Errorf("licet store verify: exit code %d\n%s%s", verified.code, verified.stdout, verified.stderr)
	}
}

// providerRefusal reports whether a response is 50200: money may be on its way.
func providerRefusal(err error) bool {
	odd, is := err.(*oddAnswer)
	return is && odd.status == http.StatusBadGateway
}

// complete does what the outside world does in the end: the bank says again what it has
// taken, as buyers do who pay again, and shops ask again for refunds that
// were not answered. What was never tried goes on by itself before that.
func (l *till) complete(t *testing.T, a api, b *bank) {
	t.Helper()
	resumed, asked := 0, 0
	for orderNo := range l.orders {
		read := func() object { return a.want(t, 200, "GET", "/v1/orders/"+orderNo, "").Data }
		pause := time.Millisecond // it grows: a refund that failed waits for 15 seconds, whatever asks for it
		for now := read(); ; now = read() {
			missed := b.of(orderNo).taken == 1 && now["paid_at"] == nil
			due := now["refund_due"] == true
			wanted := l.refunds[orderNo] && now.text("status") == "paid"
			if !missed && !due && !wanted {
				break
			}
			var err error
			if missed || due && rand.IntN(2) == 0 {
				resumed++
				_, err = demand(200, http.StatusBadGateway)(a.pay(t.Context(), orderNo))
			} else {
				asked++
				_, err = demand(200, http.StatusBadGateway,
					http.StatusConflict)(a.changeOrder(t.Context(), orderNo+"/refund", orderNo))
			}
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(pause)
			pause = min(2*pause, 250*time.Millisecond)
		}
	}
	orders, refunded := l.count()
	t.Logf("%d orders, %d refunds were acknowledged; in the end %d times the pay page and %d times a refund was asked "+
		"for again", orders, refunded, resumed, asked)
}

func (l *till) verify(t *testing.T, a api, b *bank) {
	t.Helper()
	states := map[string]int{}
	again := 0
	for orderNo := range l.orders {
		now := a.want(t, 200, "GET", "/v1/orders/"+orderNo, "").Data
		status, license := now.text("status"), now.text("license_key")
		states[status]++
		money := b.of(orderNo)
		if money.asked > 1 {
			again++
		}
		problem := func(format string, args ...any) {
			t.Errorf("%s: %s; taken %d, returned %d, asked %d, last status %q: %v", orderNo,
				fmt.Sprintf(format, args...), money.taken, money.returned, money.asked, l.final[orderNo], now)
		}
		if money.returned > money.taken {
			problem("more went back than came")
		}
		if (money.returned == 1) != (status == "refunded") || now["refund_due"] == true {
			problem("the books disagree")
		}
		if money.taken == 1 && !slices.Contains([]string{"paid", "refunded"}, status) || status == "paid" &&
			license == "" {
			problem("it is paid, and there is neither license nor refund")
		}
		if final := l.final[orderNo]; final == "refunded" && status != final || final == "paid" && license == "" {
			problem("a response said otherwise")
		}
		if license == "" {
			continue
		}
		if revoked := a.want(t, 200, "GET", "/v1/licenses/"+license,
			"").Data.text("status") == "revoked"; revoked != (status == "refunded") {
			problem("its license is revoked: %v", revoked)
		}
	}
	for _, orderNo := range b.orders() {
		if !l.orders[orderNo] {
			t.Errorf("the bank has money of %s, which no response named", orderNo)
		}
	}
	t.Logf("in the end %v; for %d orders the bank was asked for the money more than once", states, again)
	if states["refunded"] == 0 || states["paid"] == 0 || states["canceled"] == 0 {
		t.Error("not all that can become of an order has happened")
	}
}
