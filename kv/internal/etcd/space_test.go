package etcd

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/internal/etcdtest"
	"licet/kv/internal/kvtest"
	"licet/metrics"
	"licet/node/store"
)

// smallQuota is large enough for members that differ by some pages.
const smallQuota = 8 << 20

// spaceLab is a client of an etcd with a small quota.
type spaceLab struct {
	t       *testing.T
	cluster *etcdtest.Cluster
	client  *Client
	metrics *metrics.Metrics
	puts    int // keys
}

func newSpaceLab(t *testing.T, members int) *spaceLab {
	t.Helper()
	l := &spaceLab{t: t, cluster: etcdtest.StartSmall(t, members, smallQuota), metrics: kvtest.Metrics()}
	var err error
	l.client, err = Open(l.ctx(),
		Config{Endpoints: l.cluster.Endpoints(), Metrics: l.metrics, Log: zerolog.New(zerolog.NewTestWriter(t))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.client.Close() })
	return l
}

func (l *spaceLab) ctx() context.Context { return kvtest.Context(l.t, 30*time.Second) }

func (l *spaceLab) used(kind string) float64 {
	return kvtest.Counted(l.t, l.metrics.StoreQuotaUsed.WithLabelValues(kind))
}

// size returns the share of the quota that the first member uses.
func (l *spaceLab) size(kind string) float64 {
	l.t.Helper()
	status, err := l.client.Native.Status(l.ctx(), l.cluster.Endpoints()[0])
	if err != nil {
		l.t.Fatal(err)
	}
	u := usageOf((*etcdserverpb.StatusResponse)(status))
	return map[string]float64{"in_use": u.inUse, "file": u.file}[kind]
}

// fill puts keys until the client knows that a share of the quota is used.
func (l *spaceLab) fill(kind string, share float64) {
	l.t.Helper()
	for size := l.size(kind); size < share; size = l.size(kind) {
		// Half of what is missing: the size changes when etcd commits, and includes some pages more.
		count := max(4, min(100, int((share-size)*smallQuota/2/ballastSize)))
		puts := make([]clientv3.Op, count)
		for i := range puts {
			puts[i] = clientv3.OpPut(ballastKey(l.puts), strings.Repeat("x", ballastSize))
			l.puts++
		}
		if _, err := l.client.Native.Txn(l.ctx()).Then(puts...).Commit(); err != nil {
			l.t.Fatal(err)
		}
		time.Sleep(150 * time.Millisecond) // etcd commits each 100 ms
	}
	kvtest.Await(l.t, func() bool { return l.used(kind) >= share })
}

const ballastSize = 4000

func ballastKey(i int) string { return fmt.Sprintf("ballast %06d", i) }

// free removes keys and their history until the client knows that less than a share of the quota is in use.
func (l *spaceLab) free(share float64) {
	l.t.Helper()
	for l.used("in_use") >= share {
		before := l.used("in_use")
		end := ballastKey(l.puts)
		l.puts -= 4 + int((before-share)*smallQuota/ballastSize)
		removed, err := l.client.Native.Delete(l.ctx(), ballastKey(l.puts), clientv3.WithRange(end))
		if err != nil {
			l.t.Fatal(err)
		}
		if _, err := l.client.Native.Compact(l.ctx(), removed.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
			l.t.Fatal(err)
		}
		kvtest.Await(l.t, func() bool {
			// A commit frees the pages that the commit before it has emptied.
			if _, err := l.client.Native.Put(l.ctx(), "tick", ""); err != nil {
				l.t.Fatal(err)
			}
			return l.used("in_use") < before
		})
	}
}

func (l *spaceLab) defragment(member int) {
	l.t.Helper()
	if _, err := l.client.Native.Defragment(l.ctx(), l.cluster.Endpoints()[member]); err != nil {
		l.t.Fatal(err)
	}
}

func (l *spaceLab) want(space store.Space) {
	l.t.Helper()
	if got := l.client.Space(); got != space {
		l.t.Errorf("space %d with %.3f in use and a file of %.3f, want %d", got, l.used("in_use"), l.used("file"), space)
	}
	for state, of := range map[string]store.Space{"reserve": store.SpaceReserve, "full": store.SpaceFull} {
		if got := kvtest.Counted(l.t, l.metrics.StoreSpace.WithLabelValues(state)); got != zeroOrOne(space == of) {
			l.t.Errorf("the metric of the state %s is %v", state, got)
		}
	}
}

// TestReserve: the reserve begins at 90 % of the quota in use, and ends below 85 %.
func TestReserve(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t, 1)
	l.want(store.SpaceFree)
	l.fill("in_use", 0.87)
	l.want(store.SpaceFree)
	l.fill("in_use", 0.90)
	l.want(store.SpaceReserve)
	l.free(0.88)
	l.want(store.SpaceReserve)
	l.free(0.85)
	l.want(store.SpaceFree)
	l.fill("in_use", 0.87)
	l.want(store.SpaceFree)
}

// TestReserveByFile: a file of 97 % of the quota begins the reserve, however little is in use. A member whose file is
// larger than the files of the others decides.
func TestReserveByFile(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t, 3)
	l.fill("file", 0.97)
	l.want(store.SpaceReserve)
	l.free(0.50)
	l.want(store.SpaceReserve)
	l.defragment(0)
	l.defragment(1)
	l.fill("in_use", l.used("in_use")+0.01) // waits for a probe
	l.want(store.SpaceReserve)
	l.defragment(2)
	kvtest.Await(t, func() bool { return l.used("file") < reserveFile })
	l.want(store.SpaceFree)
}

func TestUsageWithoutQuota(t *testing.T) {
	status := &clientv3.StatusResponse{DbSize: 1 << 40, DbSizeInUse: 1 << 40}
	for _, quota := range []int64{0, -1} {
		status.DbSizeQuota = quota
		if u := usageOf((*etcdserverpb.StatusResponse)(status)); u.reserves(false) || u.reserves(true) {
			t.Errorf("a quota of %d: %+v", quota, u)
		}
	}
}
