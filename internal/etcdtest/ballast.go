package etcdtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Ballast fills an etcd with keys that a test removes again. One goroutine at a time uses a Ballast.
type Ballast struct {
	t        testing.TB
	client   *clientv3.Client
	endpoint string
	keys     int
}

// ballastSize is the size of a value in bytes: the value takes a page of the database.
const ballastSize = 4000

// NewBallast returns a Ballast of the cluster that an endpoint belongs to.
func NewBallast(t testing.TB, endpoint string) *Ballast {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{endpoint}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return &Ballast{t: t, client: client, endpoint: endpoint}
}

// FillInUse adds keys until the data in use has a share of the quota of the member at the endpoint.
func (b *Ballast) FillInUse(share float64) {
	b.t.Helper()
	b.fill(share, func(s *clientv3.StatusResponse) int64 { return s.DbSizeInUse })
}

// FillFile adds keys until the file has a share of the quota of the member at the endpoint.
func (b *Ballast) FillFile(share float64) {
	b.t.Helper()
	b.fill(share, func(s *clientv3.StatusResponse) int64 { return s.DbSize })
}

func (b *Ballast) fill(share float64, size func(*clientv3.StatusResponse) int64) {
	b.t.Helper()
	for {
		status := b.status()
		missing := int64(share*float64(status.DbSizeQuota)) - size(status)
		if missing < 0 {
			return
		}
		// Half of what is missing: the size changes when etcd commits, and includes pages of the tree.
		puts := make([]clientv3.Op, min(max(missing/2/ballastSize, 2), 100))
		for i := range puts {
			puts[i] = clientv3.OpPut(b.key(b.keys), strings.Repeat("x", ballastSize))
			b.keys++
		}
		b.txn(puts...)
		time.Sleep(150 * time.Millisecond) // etcd commits each 100 ms
	}
}

// Free removes keys and their history until less than a share of the quota is in use. The file keeps its size.
func (b *Ballast) Free(share float64) {
	b.t.Helper()
	for {
		status := b.status()
		excess := status.DbSizeInUse - int64(share*float64(status.DbSizeQuota))
		if excess < 0 {
			return
		}
		end := b.key(b.keys)
		b.keys = max(0, b.keys-2-int(excess/ballastSize))
		revision := b.txn(clientv3.OpDelete(b.key(b.keys), clientv3.WithRange(end)))
		if _, err := b.client.Compact(b.ctx(), revision, clientv3.WithCompactPhysical()); err != nil {
			b.t.Fatal(err)
		}
		for range 3 { // each commit frees the pages that the commit before it has emptied
			b.txn(clientv3.OpPut(b.key(b.keys), ""))
			time.Sleep(150 * time.Millisecond)
		}
	}
}

// Defragment makes the file of the member at an endpoint as small as its data.
func (b *Ballast) Defragment(endpoint string) {
	b.t.Helper()
	if _, err := b.client.Defragment(b.ctx(), endpoint); err != nil {
		b.t.Fatal(err)
	}
}

func (b *Ballast) key(i int) string { return fmt.Sprintf("ballast/%06d", i) }

func (b *Ballast) ctx() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	b.t.Cleanup(cancel)
	return ctx
}

func (b *Ballast) status() *clientv3.StatusResponse {
	b.t.Helper()
	status, err := b.client.Status(b.ctx(), b.endpoint)
	if err != nil {
		b.t.Fatal(err)
	}
	return status
}

func (b *Ballast) txn(ops ...clientv3.Op) (revision int64) {
	b.t.Helper()
	response, err := b.client.Txn(b.ctx()).Then(ops...).Commit()
	if err != nil {
		b.t.Fatal(err)
	}
	return response.Header.Revision
}
