package etcd

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/node/store"
)

// Under its alarm NOSPACE, etcd refuses each transaction that puts a key, and each grant of
// a lease; etcd still executes reads and removals (server/etcdserver/apply, applierV3Capped).
// A refused request costs etcd as much as another one: it raises the alarm again, through
// the log. And since etcd reports NoSpace also for requests that it has applied, their
// outcome is unknown. So while the alarm is known to be on, a request that puts a key is
// not sent: a new change has then not been executed, and a change in doubt stays in doubt
// without waiting for its deadline.
//
// The answer NoSpace proves that the alarm is on, since etcd raises the alarm before it
// answers. The probes of the members show each second whether it still is.
//
// Before the alarm comes the reserve: the nodes refuse growth, so that removals, revocations and payments
// still have room. The fullest member decides, since one member's alarm stops the writes of all.

// Shares of the quota. The data in use counts with the history that is not compacted yet. The file also has
// pages that are free. etcd raises the alarm by the file: free pages of the file are no help there, although
// etcd would write into them.
const (
	reserveInUse      = 0.90 // the data in use begins the reserve
	reserveInUseUntil = 0.85 // and ends it below this share, so that the state does not alternate
	reserveFile       = 0.97 // the file begins the reserve, and ends it below this share
)

// ErrFull is the error of a request that was not sent, because it puts a key and the alarm is on.
var ErrFull = fmt.Errorf("etcd's alarm NOSPACE is on: %w", store.ErrFull)

// space is what the probes of the members say about etcd's space.
type space struct {
	known   atomic.Int32 // a store.Space
	data    atomic.Bool  // the data in use alone begin the reserve, or keep it on
	reserve bool         // owned by the goroutine of members
	logged  store.Space  // the last logged state; owned by the same goroutine
}

func (s *space) now() store.Space { return store.Space(s.known.Load()) }

// usage contains the sizes of a member's database as shares of its quota. Zero: the member has no quota.
type usage struct{ inUse, file float64 }

// usageOf returns the usage that a status reports. etcd reports its default quota if none is configured, and a
// negative number if there is no quota.
func usageOf(status *etcdserverpb.StatusResponse) usage {
	if status.DbSizeQuota <= 0 {
		return usage{}
	}
	quota := float64(status.DbSizeQuota)
	return usage{inUse: float64(status.DbSizeInUse) / quota, file: float64(status.DbSize) / quota}
}

// reserves reports whether the reserve is on at a usage, if it was on before or not.
func (u usage) reserves(before bool) bool {
	from := reserveInUse
	if before {
		from = reserveInUseUntil
	}
	return u.inUse >= from || u.file >= reserveFile
}

// refusalOfPuts returns ErrFull while no request that puts a key may be sent, else nil.
func (m *members) refusalOfPuts() error {
	if m != nil && m.space.now() == store.SpaceFull {
		return ErrFull
	}
	return nil
}

// learn notes what the failure of a request says about the cluster.
func (m *members) learn(err error) {
	if m == nil || !errors.Is(err, rpctypes.ErrNoSpace) {
		return
	}
	m.space.known.Store(int32(store.SpaceFull))
	select {
	case m.hurry <- struct{}{}:
	default: // a probe is due already
	}
}

// noteSpace learns from a round of probes how much space etcd has. If no member has
// answered, the state stays as it was; if an answer NoSpace came during the round, the state
// stays SpaceFull until the next round, which is due at once.
func (m *members) noteSpace() {
	answered, full := false, len(m.hurry) > 0
	var fullest usage
	for _, member := range m.list {
		if member.err == nil {
			answered, full = true, full || member.full
			fullest.inUse = max(fullest.inUse, member.usage.inUse)
			fullest.file = max(fullest.file, member.usage.file)
		}
	}
	if answered {
		m.space.reserve = fullest.reserves(m.space.reserve)
		m.space.data.Store(m.space.reserve && fullest.inUse >= reserveInUseUntil)
		m.metrics.StoreQuotaUsed.WithLabelValues("in_use").Set(fullest.inUse)
		m.metrics.StoreQuotaUsed.WithLabelValues("file").Set(fullest.file)
		now := store.SpaceFree
		switch {
		case full:
			now = store.SpaceFull
		case m.space.reserve:
			now = store.SpaceReserve
		}
		m.space.known.Store(int32(now))
	}
	m.reportSpace(fullest)
}

// reportSpace logs a change of the space, and sets its metric.
func (m *members) reportSpace(fullest usage) {
	now, before := m.space.now(), m.space.logged
	m.space.logged = now
	for _, state := range []store.Space{store.SpaceReserve, store.SpaceFull} {
		m.metrics.StoreSpace.WithLabelValues(state.String()).Set(zeroOrOne(now == state))
	}
	if now == before {
		return
	}
	switch now {
	case store.SpaceFull:
		m.log.Error().Msg("etcd is full (alarm NOSPACE): nodes refuse changes until there is room and the alarm is " +
			"disarmed; reads work")
	case store.SpaceReserve:
		m.log.Error().Float64("in_use", fullest.inUse).Float64("file", fullest.file).
			Msg("etcd is almost full: nodes refuse growth until the fullest member uses less of its quota; in_use " +
				"and file are its shares of the quota")
	default:
		m.log.Info().Msg("etcd accepts all changes again")
	}
}

func zeroOrOne(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// reportsNoSpace reports whether a member's status names the alarm.
func reportsNoSpace(status *etcdserverpb.StatusResponse) bool {
	for _, trouble := range status.Errors {
		if strings.Contains(trouble, etcdserverpb.AlarmType_NOSPACE.String()) {
			return true
		}
	}
	return false
}

// Puts reports whether operations put a key. Of a transaction's branches only the first
// ever does.
func Puts(ops []*etcdserverpb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestPut() != nil || Puts(op.GetRequestTxn().GetSuccess()) {
			return true
		}
	}
	return false
}

// opsPut reports whether operations of etcd's client put a key, as Puts does.
func opsPut(ops []clientv3.Op) bool {
	for _, op := range ops {
		if op.IsPut() {
			return true
		}
		if op.IsTxn() {
			if _, then, _ := op.Txn(); opsPut(then) {
				return true
			}
		}
	}
	return false
}
