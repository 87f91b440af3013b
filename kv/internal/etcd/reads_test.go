package etcd

import (
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/node/store"
)

// TestEachKeyCounts: of many small keys, a read counts each key. A missing key counts nothing.
func TestEachKeyCounts(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t, 1)
	const keys, missing = 50, "small/missing"
	names := []string{missing}
	var puts []clientv3.Op
	for i := range keys {
		names = append(names, fmt.Sprintf("small/%02d", i))
		puts = append(puts, clientv3.OpPut(names[i+1], "x"))
	}
	if _, err := l.client.Txn(l.ctx(), "test", nil, puts, nil); err != nil {
		t.Fatal(err)
	}
	want := int64(keys * (len("small/00x") + keyCost))
	ctx, reads := store.CountReads(l.ctx())
	if _, err := l.client.GetAll(ctx, "test", names); err != nil {
		t.Fatal(err)
	}
	if reads.Bytes() != want {
		t.Errorf("single keys count %d, want %d", reads.Bytes(), want)
	}
	if _, err := l.client.Page(ctx, "test", "small/", "small0", keys, 0); err != nil {
		t.Fatal(err)
	}
	if reads.Bytes() != 2*want {
		t.Errorf("with a page of the same keys %d, want %d", reads.Bytes(), 2*want)
	}
}
