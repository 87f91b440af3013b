package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"licet/internal/etcdtest"
	"licet/kv"
)

// sendOnce makes one POST under an Idempotency-Key, as often as it takes for five minutes: it tries again wherever an
// answer, or none, says that this is safe and may help.
func (a api) sendOnce(ctx context.Context, path, idempotencyKey, body string) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	for ; ; time.Sleep(5 * time.Millisecond) { // the request in progress needs the processor
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+path, strings.NewReader(body))
		if err != nil {
			return reply{}, err
		}
		request.Header.Set("Authorization", "Bearer "+a.key)
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Idempotency-Key", idempotencyKey)
		r, err := a.do(request)
		switch {
		case ctx.Err() != nil:
			return reply{}, ctx.Err()
		case err != nil && (brokenConnection(err) || os.IsTimeout(err)):
		case err != nil || r.status == http.StatusCreated:
			return r, err
		case r.Code == 40900, r.status == http.StatusServiceUnavailable, r.status == http.StatusGatewayTimeout:
		default:
			return r, fmt.Errorf("status %d: %s", r.status, r.body)
		}
	}
}

// TestIdempotencyOverNodes asks two nodes for the same thing forty times at
// once, again and again, and kills one of them in between.
func TestIdempotencyOverNodes(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 1)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	nodes := []*process{startServe(t, "--etcd-endpoints", endpoints), startServe(t, "--etcd-endpoints", endpoints)}
	_, both := newFleet(key, nodes...)

	const asks, rounds, quantity = 40, 6, 200
	for round := range rounds {
		var mu sync.Mutex
		var answered int
		orders, grants := map[string]bool{}, map[string]bool{}
		note := func(into map[string]bool, what string) {
			mu.Lock()
			defer mu.Unlock()
			into[what] = true
			if answered++; round == rounds/2 && answered == 1 {
				nodes[0].kill()
			}
		}
		atOnce(asks, func(int) {
			r, err := both.sendOnce(t.Context(), "/v1/orders", fmt.Sprint("order-", round),
				`{"product_id":"editor","amount":100,"currency":"EUR"}`)
			if err != nil {
				t.Errorf("order: %v", err)
				return
			}
			note(orders, r.Data.text("order_no"))
		})
		atOnce(3, func(int) {
			r, err := both.sendOnce(t.Context(), "/v1/licenses", fmt.Sprint("grant-", round),
				fmt.Sprintf(`{"product_id":"editor","quantity":%d}`, quantity))
			if err != nil {
				t.Errorf("grant: %v", err)
				return
			}
			var keys []string
			for _, l := range r.Data.list("licenses") {
				keys = append(keys, l.text("license_key"))
			}
			if len(keys) != quantity {
				t.Errorf("%d licenses, want %d", len(keys), quantity)
			}
			note(grants, strings.Join(keys, " "))
		})
		if len(orders) != 1 || len(grants) != 1 {
			t.Fatalf("round %d: %d orders and %d grants were made, want one of each", round, len(orders), len(grants))
		}
	}
}
