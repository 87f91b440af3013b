package etcd

import (
	"context"
	"testing"

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
	ballast *etcdtest.Ballast
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
	l.ballast = etcdtest.NewBallast(t, l.cluster.Members[0].Endpoint)
	return l
}

func (l *spaceLab) ctx() context.Context { return l.t.Context() }

func (l *spaceLab) used(kind string) float64 {
	return kvtest.Counted(l.t, l.metrics.StoreQuotaUsed.WithLabelValues(kind))
}

func (l *spaceLab) want(space store.Space) {
	l.t.Helper()
	if got := l.client.Space(); got != space {
		l.t.Errorf("space %d with %.3f in use and a file of %.3f, want %d", got, l.used("in_use"), l.used("file"),
			space)
	}
	for state, of := range map[string]store.Space{"reserve": store.SpaceReserve, "full": store.SpaceFull} {
		if got := kvtest.Counted(l.t, l.metrics.StoreSpace.WithLabelValues(state)); got != zeroOrOne(space == of) {
			l.t.Errorf("the metric of the state %s is %v", state, got)
		}
	}
}

// fill fills etcd until the client knows that a share of the quota is in use.
func (l *spaceLab) fill(share float64) {
	l.t.Helper()
	l.ballast.FillInUse(share)
	kvtest.Await(l.t, func() bool { return l.used("in_use") >= share })
}

// free makes room until the client knows that less than a share of the quota is in use.
func (l *spaceLab) free(share float64) {
	l.t.Helper()
	l.ballast.Free(share)
	kvtest.Await(l.t, func() bool { return l.used("in_use") < share })
}

// TestReserve: the reserve begins at 90 % of the quota in use, and ends below 85 %.
func TestReserve(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t, 1)
	l.want(store.SpaceFree)
	l.fill(0.87)
	l.want(store.SpaceFree)
	l.fill(0.90)
	l.want(store.SpaceReserve)
	l.free(0.88)
	l.want(store.SpaceReserve)
	l.free(0.85)
	l.want(store.SpaceFree)
	l.fill(0.87)
	l.want(store.SpaceFree)
}

// TestReserveByFile: a file of 97 % of the quota begins the reserve, however little is in use. A member whose file is
// larger than the files of the others decides.
func TestReserveByFile(t *testing.T) {
	t.Parallel()
	l := newSpaceLab(t, 3)
	l.ballast.FillFile(0.97)
	kvtest.Await(t, func() bool { return l.used("file") >= 0.97 })
	l.want(store.SpaceReserve)
	l.free(0.50)
	l.want(store.SpaceReserve)
	l.ballast.Defragment(l.cluster.Members[0].Endpoint)
	l.ballast.Defragment(l.cluster.Members[1].Endpoint)
	l.fill(l.used("in_use") + 0.01) // waits for a probe
	l.want(store.SpaceReserve)
	l.ballast.Defragment(l.cluster.Members[2].Endpoint)
	kvtest.Await(t, func() bool { return l.used("file") < reserveFile })
	l.want(store.SpaceFree)
}

// TestFullestMemberDecides: one member with 91 % of its quota in use begins the reserve, whichever member it is, and a
// member that has not answered does not count.
func TestFullestMemberDecides(t *testing.T) {
	fullest, other := usage{inUse: 0.91, file: 0.91}, usage{inUse: 0.30, file: 0.40}
	for _, c := range []struct {
		members []*member
		want    store.Space
	}{
		{[]*member{{usage: fullest}, {usage: other}, {usage: other}}, store.SpaceReserve},
		{[]*member{{usage: other}, {usage: other}, {usage: fullest}}, store.SpaceReserve},
		{[]*member{{usage: other}, {usage: other}, {usage: fullest, err: errPanic}}, store.SpaceFree},
		{[]*member{{usage: other, full: true}, {usage: other}}, store.SpaceFull},
	} {
		m := &members{list: c.members, metrics: kvtest.Metrics(), log: zerolog.Nop()}
		if m.noteSpace(); m.space.now() != c.want {
			t.Errorf("%+v: space %v, want %v", c.members, m.space.now(), c.want)
		}
	}
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
