package kv

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"licet/internal/depth"
	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/internal/layout"
	"licet/licensing"
	"licet/licensing/keyring"
	"licet/node/store"
)

// workKV counts the work of etcd for reads.
type workKV struct {
	etcdserverpb.KVClient
	mu   sync.Mutex
	work work
}

// work is the work of etcd for reads: keys that etcd counted, keys that it returned, and requests.
type work struct{ counted, given, requests int64 }

func (k *workKV) note(responses ...*etcdserverpb.RangeResponse) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.work.requests++
	for _, r := range responses {
		k.work.counted += r.Count
		k.work.given += int64(len(r.Kvs))
	}
}

// take returns the work since the last call.
func (k *workKV) take() work {
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.work
	k.work = work{}
	return w
}

func (k *workKV) Range(
	ctx context.Context, request *etcdserverpb.RangeRequest, opts ...grpc.CallOption,
) (*etcdserverpb.RangeResponse, error) {
	response, err := k.KVClient.Range(ctx, request, opts...)
	if err == nil {
		k.note(response)
	}
	return response, err
}

func (k *workKV) Txn(
	ctx context.Context, request *etcdserverpb.TxnRequest, opts ...grpc.CallOption,
) (*etcdserverpb.TxnResponse, error) {
	response, err := k.KVClient.Txn(ctx, request, opts...)
	if err == nil {
		var ranges []*etcdserverpb.RangeResponse
		for _, r := range response.Responses {
			if one := r.GetResponseRange(); one != nil {
				ranges = append(ranges, one)
			}
		}
		k.note(ranges...)
	}
	return response, err
}

func workStore(t testing.TB) (*Store, *workKV) {
	t.Helper()
	kv := &workKV{KVClient: clientv3.RetryKVClient(server.Client)}
	s, err := storeOver(kv, server.Client, kvtest.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	return s, kv
}

// largeOwner returns an owner with n licenses and n orders of one buyer, written straight into etcd. Half of them were
// made in one burst.
func largeOwner(t testing.TB, n int) licensing.Owner {
	t.Helper()
	owner := licensing.Owner{AccountID: fmt.Sprintf("acct_large%d", n), Mode: licensing.Test}
	random := rand.New(rand.NewPCG(uint64(n), 7))
	var children, puts []clientv3.Op
	flush := func(least int) {
		if len(puts) >= least {
			children, puts = append(children, clientv3.OpTxn(nil, puts, nil)), nil
		}
		if len(children) >= 60 || least == 1 && len(children) > 0 {
			if _, err := server.Client.Txn(t.Context()).Then(children...).Commit(); err != nil {
				t.Fatal(err)
			}
			children = nil
		}
	}
	put := func(key string, value []byte) { puts = append(puts, clientv3.OpPut(key, string(value))) }
	at := kvtest.Time
	for i := range n {
		if i < n/4 || i > 3*n/4 {
			at = at.Add(time.Duration(random.IntN(100_000)) * time.Millisecond)
		} else if i%100 == 0 {
			at = at.Add(time.Millisecond)
		}
		var entropy [keyring.LicenseKeyEntropy]byte
		binary.BigEndian.PutUint64(entropy[:], random.Uint64())
		binary.BigEndian.PutUint64(entropy[4:], random.Uint64())
		license := layout.License{License: *licensing.DefaultTerms().Issue(kvtest.Keys.Mint("LIC", owner,
			entropy), owner, "pro", "", at)}
		put(keyspace.LicenseKey(license.License.Key.ID()), license.Encode())
		for _, key := range entryKeys(keyspace.ListingKey(owner, at, license.License.Key.ID())) {
			put(key, nil)
		}
		flush(60)
	}
	flush(1)
	return owner
}

// pageWork is the work of etcd for the pages of a listing.
type pageWork struct {
	pages, items int
	most, sum    work
}

func (p *pageWork) add(w work, items int) {
	p.pages++
	p.items += items
	p.most = work{max(p.most.counted, w.counted), max(p.most.given, w.given), max(p.most.requests, w.requests)}
	p.sum = work{p.sum.counted + w.counted, p.sum.given + w.given, p.sum.requests + w.requests}
}

func (p *pageWork) String() string {
	n := int64(p.pages)
	return fmt.Sprintf("%d pages of %d items: %d keys counted a page, %d at most; %d given, %d at most; %d requests, "+
		"%d at most",
		p.pages, p.items, p.sum.counted/n, p.most.counted, p.sum.given/n, p.most.given, p.sum.requests/n,
		p.most.requests)
}

// TestPagesCostTheSame pages through 1,000 licenses and through 10,000, at the
// beginning and deep inside. The work of etcd for a page is bounded and does not
// grow with the number of licenses.
func TestPagesCostTheSame(t *testing.T) {
	depth.NotRaced(t)
	s, kv := workStore(t)
	nothing := func(*store.LicenseView) bool { return false }
	for _, c := range []struct {
		name         string
		limit, pages int
		keep         func(*store.LicenseView) bool
		// The most work of etcd for a page, on average and for any page.
		average, most work
	}{
		{"pages of 20", 20, 150, nil, work{400, 400, 6}, work{1500, 1500, 10}},
		{"pages of 100, all of them", 100, 1000, nil, work{600, 600, 8}, work{1500, 1500, 12}},
		{"pages of which a filter leaves nothing", 20, 20, nothing, work{1500, 1500, 20}, work{2500, 2500, 30}},
	} {
		for _, n := range []int{1_000, 10_000} {
			owner := largeOwnerOnce(t, n)
			var cost pageWork
			for _, from := range []store.Position{"", middle(t, s, owner, n)} {
				items := 0
				page := store.Page{Before: from, Limit: c.limit}
				kv.take()
				for left := c.pages; left > 0; left-- {
					list, err := s.ListLicenses(t.Context(), owner, licensing.Customer{}, page, c.keep)
					if err != nil {
						t.Fatal(err)
					}
					cost.add(kv.take(), len(list.Items))
					items += len(list.Items)
					if page.Before = list.Next; page.Before == "" {
						break
					}
				}
				if whole := from == "" && c.pages*c.limit >= n; whole &&
					(page.Before != "" || items != n && c.keep == nil) {
					t.Errorf("%s: %d of %d licenses were listed", c.name, items, n)
				}
				if c.pages*c.limit >= n {
					break
				}
			}
			t.Logf("%s, %d licenses: %v", c.name, n, &cost)
			pages := int64(cost.pages)
			average := work{cost.sum.counted / pages, cost.sum.given / pages, cost.sum.requests / pages}
			if average.exceeds(c.average) || cost.most.exceeds(c.most) {
				t.Errorf("%s: with %d licenses a page cost %+v, and %+v at most", c.name, n, average, cost.most)
			}
		}
	}
}

// middle is a position in the middle of an owner's licenses.
func middle(t testing.TB, s *Store, owner licensing.Owner, n int) store.Position {
	t.Helper()
	positions, err := s.walkFrom(owner, keyspace.LicensesOf(owner), "").next(t.Context(), n/2)
	if err != nil || len(positions) != n/2 {
		t.Fatal(len(positions), err)
	}
	return store.Position(positions[n/2-1])
}

func (w work) exceeds(bound work) bool {
	return w.counted > bound.counted || w.given > bound.given || w.requests > bound.requests
}

// largeOwners are the owners that [largeOwner] made, by their number of licenses.
var largeOwners sync.Map

func largeOwnerOnce(t testing.TB, n int) licensing.Owner {
	t.Helper()
	if owner, made := largeOwners.Load(n); made {
		return owner.(licensing.Owner)
	}
	owner := largeOwner(t, n)
	largeOwners.Store(n, owner)
	return owner
}

// BenchmarkPage reads a page of 20 licenses: the first one, and one in the
// middle.
func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		owner := largeOwnerOnce(b, n)
		s, kv := workStore(b)
		for name, before := range map[string]store.Position{"first": "", "middle": middle(b, s, owner, n)} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				kv.take()
				for b.Loop() {
					list, err := s.ListLicenses(b.Context(), owner, licensing.Customer{},
						store.Page{Before: before, Limit: 20}, nil)
					if err != nil || len(list.Items) != 20 {
						b.Fatal(len(list.Items), err)
					}
				}
				b.ReportMetric(float64(kv.take().counted)/float64(b.N), "keys-counted/op")
			})
		}
	}
}
