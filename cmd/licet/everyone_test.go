package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"licet/internal/depth"
	"licet/internal/etcdtest"
	"licet/kv"
)

// replace sends what went to one node to another from now on.
func (f *fleet) replace(old, next *process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, host := range f.hosts {
		if host == strings.TrimPrefix(old.url, "http://") {
			f.hosts[i] = strings.TrimPrefix(next.url, "http://")
		}
	}
}

// storm does the main job until ctx ends, whatever happens to the connections.
func (l *ledger) storm(ctx context.Context, a api, name, sharedKey string) error {
	for i := 0; ctx.Err() == nil; i++ {
		err := l.work(ctx, a, fmt.Sprintf("%s-%d", name, i), sharedKey)
		if err != nil && !refusal(err) && !brokenConnection(err) && ctx.Err() == nil {
			return err
		}
		time.Sleep(pause)
	}
	return nil
}

// TestEachProcessIsKilledOnce runs three nodes on three members of etcd, kills
// each of the six in turn under load, and brings it back. Everything that was
// acknowledged must be there, and the store must not contradict itself.
func TestEachProcessIsKilledOnce(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	endpoints := strings.Join(cluster.Endpoints(), ",")
	key := storeKey(t, kv.Config{Endpoints: cluster.Endpoints()})
	start := func() *process {
		p := startServe(t, "--etcd-endpoints", endpoints)
		p.key = key
		return p
	}
	nodes := []*process{start(), start(), start()}
	f, all := newFleet(key, nodes...)
	book := newLedger()
	sharedKey := all.grant(t, 3)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, workers)
	for i := range workers {
		go func() { done <- book.storm(ctx, all, fmt.Sprintf("w%d", i), sharedKey) }()
	}
	// A kill counts only where there was traffic before it, and there is after.
	traffic := func() {
		t.Helper()
		floor := book.acks.Load() + depth.Of[int64](50, 150)
		waitFor(t, func() bool { return book.acks.Load() >= floor })
	}
	for _, member := range cluster.Members {
		traffic()
		waitFor(t, func() bool { return leftOut(nodes) == 0 })
		member.Kill()
		traffic()
		member.Restart(t)
	}
	for i, node := range nodes {
		traffic()
		node.kill()
		traffic()
		nodes[i] = start()
		f.replace(node, nodes[i])
	}
	traffic()
	cancel()
	for range workers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	book.verify(t, all)

	verified := runLicet(t, "store", "verify", "--etcd-endpoints", endpoints)
	if verified.code != exitOK {
		t.Errorf("licet store verify: exit code %d\n%s%s", verified.code, verified.stdout, verified.stderr)
	}
	t.Logf("%d changes were acknowledged, and none was lost\n%s", book.acks.Load(), verified.stdout)
}
