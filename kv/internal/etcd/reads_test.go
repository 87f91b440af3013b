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
	want := keys * (len("small/00x") + keyCost)
	read := 0
	ctx := store.CountReads(l.ctx(), func(bytes int) { read += bytes }, nil)
	if _, err := l.client.GetAll(ctx, "test", names); err != nil {
		t.Fatal(err)
	}
	if read != want {
		t.Errorf("single keys count %d, want %d", read, want)
	}
	if _, err := l.client.Page(ctx, "test", "small/", "small0", keys, 0); err != nil {
		t.Fatal(err)
	}
	if read != 2*want {
		t.Errorf("with a page of the same keys %d, want %d", read, 2*want)
	}
}
