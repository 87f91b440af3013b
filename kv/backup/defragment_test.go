package backup

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/etcdtest"
	"licet/kv/internal/etcd"
	"licet/kv/internal/kvtest"
)

// TestDefragment frees space on all members. The leader comes last, and leads no more then.
func TestDefragment(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	cfg := Config{Endpoints: cluster.Endpoints()}
	client := kvtest.Must(etcd.Connect(cfg.Endpoints, cfg.TLS))(t)
	t.Cleanup(func() { _ = client.Close() })
	leader := leaderOf(t, client)

	var logged []Defragmented
	note := func(d Defragmented) { logged = append(logged, d) }
	if err := Defragment(t.Context(), cfg, note); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 3 ||
		slices.ContainsFunc(logged, func(d Defragmented) bool {
			return d.Done || d.Before != d.After || d.Before == 0
		}) {
		t.Errorf("with nothing to give back: %+v", logged)
	}
	if now := leaderOf(t, client); now != leader {
		t.Errorf("with nothing to give back the lead went from %s to %s", leader, now)
	}

	waste(t, client)
	logged = nil
	if err := Defragment(t.Context(), cfg, note); err != nil {
		t.Fatal(err)
	}
	if len(logged) != 3 ||
		slices.ContainsFunc(logged, func(d Defragmented) bool { return !d.Done || d.After >= d.Before/2 }) {
		t.Errorf("with space to give back: %+v", logged)
	}
	if last := logged[len(logged)-1].Endpoint; last != leader {
		t.Errorf("the last was %s, and %s led", last, leader)
	}
	if now := leaderOf(t, client); now == leader {
		t.Errorf("%s leads as before", leader)
	}
	if got := kvtest.Must(client.Get(t.Context(), "x/kept"))(t); len(got.Kvs) != 1 {
		t.Error("what was stored is gone")
	}
}

// TestDefragmentLeavesTheUnwell: Defragment touches no member while a member is away, or if the caller does not name
// all members.
func TestDefragmentLeavesTheUnwell(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.Start(t, 3)
	cfg := Config{Endpoints: cluster.Endpoints()}
	client := kvtest.Must(etcd.Connect(cfg.Endpoints, cfg.TLS))(t)
	t.Cleanup(func() { _ = client.Close() })
	waste(t, client)
	f := func(problem string, endpoints ...string) {
		t.Helper()
		err := Defragment(t.Context(), Config{Endpoints: endpoints},
			func(d Defragmented) { t.Errorf("worked on %s", d.Endpoint) })
		if err == nil || !strings.HasPrefix(err.Error(), "nothing was done: ") ||
			!strings.Contains(err.Error(), problem) {
			t.Errorf("got error %v, want %q", err, problem)
		}
	}
	all := cluster.Endpoints()
	f("is not among the endpoints: name all 3", all[:2]...)
	f("are the same member", all[0], all[1], all[0])
	// Not the leader, whose loss the others would tell of as well.
	gone := slices.IndexFunc(all, func(endpoint string) bool { return endpoint != leaderOf(t, client) })
	cluster.Members[gone].Kill()
	f("etcd at "+all[gone]+" does not serve", all...)
}

// leaderOf is the endpoint of the member that leads.
func leaderOf(t *testing.T, client *clientv3.Client) string {
	t.Helper()
	for _, endpoint := range client.Endpoints() {
		if s := kvtest.Must(client.Status(t.Context(), endpoint))(t); s.Leader == s.Header.MemberId {
			return endpoint
		}
	}
	t.Fatal("no member leads")
	return ""
}

// waste stores some megabytes on every member, of which nearly all is history then, and
// compacts it.
func waste(t *testing.T, client *clientv3.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	value := strings.Repeat("x", 100<<10)
	var revision int64
	for i := range 100 {
		revision = kvtest.Must(client.Put(ctx, fmt.Sprintf("x/%d", i%2), value))(t).Header.Revision
	}
	kvtest.Must(client.Put(ctx, "x/kept", "x"))(t)
	// It answers once the space is free on the member that was asked, so all are.
	for _, endpoint := range client.Endpoints() {
		one := kvtest.Must(etcd.Connect([]string{endpoint}, etcd.TLS{}))(t)
		_, err := one.Compact(ctx, revision, clientv3.WithCompactPhysical())
		if err != nil && !strings.Contains(err.Error(), "has been compacted") {
			t.Fatal(err)
		}
		revision++ // a later one is waited for, even if the first has done all the work
		kvtest.Must(one.Put(ctx, "x/kept", "x"))(t)
		_ = one.Close()
	}
}
