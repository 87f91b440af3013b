package kv

import (
	"crypto/rand"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/kv/internal/keyspace"
	"licet/kv/internal/kvtest"
	"licet/kv/verify"
	"licet/licensing"
	"licet/node/service"
	"licet/node/store"
)

// TestProductsInTheirListing puts and deletes products: each existing product has one entry in the listing, at the time
// of its creation.
func TestProductsInTheirListing(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	n := l.nodeWith(rand.Reader, func() time.Time { return now })
	put := func(id string, wantCreated bool) {
		t.Helper()
		p, created, err := n.PutProduct(l.ctx(),
			licensing.PutProduct{ID: id, Owner: labOwner, Name: now.String(), Terms: licensing.DefaultTerms()})
		if err != nil || created != wantCreated || p.CreatedAt.Equal(now) != wantCreated {
			t.Fatalf("%+v, %v, %v", p, created, err)
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		want []string
	}{
		{"described", func() { put("app", true) }, []string{"app"}},
		{"made along with a grant", func() {
			if _, _, err := n.Grant(l.ctx(), labOwner, service.Grant{ProductID: "granted", Quantity: 2}); err != nil {
				t.Fatal(err)
			}
		}, []string{"granted", "app"}},
		{"made along with an order", func() {
			if _, _, err := n.CreateOrder(l.ctx(), labOwner,
				service.NewOrder{ProductID: "ordered", Amount: 5, Currency: "USD"}); err != nil {
				t.Fatal(err)
			}
		}, []string{"ordered", "granted", "app"}},
		{"described again", func() { put("app", false) }, []string{"ordered", "granted", "app"}},
		{"described at last", func() { put("granted", false) }, []string{"ordered", "granted", "app"}},
		{"removed", func() {
			if err := n.DeleteProduct(l.ctx(), labOwner, "app"); err != nil {
				t.Fatal(err)
			}
		}, []string{"ordered", "granted"}},
		{"described anew", func() { put("app", true) }, []string{"app", "ordered", "granted"}},
	} {
		now = now.Add(time.Second)
		step.do()
		var got []string
		list := kvtest.Must(n.ListProducts(l.ctx(), labOwner, store.Page{Limit: 10}))(t)
		for _, p := range list.Items {
			got = append(got, p.ID)
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: %q are listed, want %q", step.name, got, step.want)
		}
		if places := kvtest.Must(l.client.Get(l.ctx(), inLab(keyspace.ProductsOf(labOwner)), clientv3.WithPrefix(),
			clientv3.WithCountOnly()))(t).Count; places != int64(len(step.want)) {
			t.Errorf("%s: there are %d entries", step.name, places)
		}
		if _, found := l.verify(verify.Config{}); len(found) > 0 {
			t.Errorf("%s: found %v", step.name, found)
		}
	}
}
