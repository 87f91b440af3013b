package etcd

import (
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"licet/licensing"
)

// Under its alarm NOSPACE, etcd refuses each transaction that puts a key, and each grant of
// a lease; it goes on with reads and removals (server/etcdserver/apply, applierV3Capped).
// A refused request costs etcd as much as another one: it raises the alarm anew, through
// the log. And since etcd reports NoSpace also for requests that it has applied, their
// outcome is unknown. So while the alarm is known to be on, a request that puts a key is
// not sent: a new change has then not been executed, and a change in doubt stays in doubt
// without waiting for its deadline.
//
// The answer NoSpace proves that the alarm is on, since etcd raises the alarm before it
// answers. The probes of the members show each second whether it still is.

// ErrFull is why a request that puts a key was not sent: the alarm is on.
var ErrFull = fmt.Errorf("etcd's alarm NOSPACE is on: %w", &licensing.Error{
	Reason:  licensing.ReasonUnavailable,
	Message: "the store is full and takes no changes until its operator makes room; nothing was changed",
})

// refusalOfPuts returns ErrFull while no request that puts a key may be sent, else nil.
func (m *members) refusalOfPuts() error {
	if m != nil && m.full.Load() {
		return ErrFull
	}
	return nil
}

// learn notes what the failure of a request says of the cluster.
func (m *members) learn(err error) {
	if m == nil || !errors.Is(err, rpctypes.ErrNoSpace) {
		return
	}
	m.full.Store(true)
	select {
	case m.hurry <- struct{}{}:
	default: // a probe is due already
	}
}

// noteSpace learns from a round of probes whether the alarm is on. If no member has
// answered, it stays as it was; if an answer NoSpace came during the round, it stays on
// until the next one, which is due at once.
func (m *members) noteSpace() {
	answered, full := false, len(m.hurry) > 0
	for _, member := range m.list {
		if member.err == nil {
			answered, full = true, full || member.full
		}
	}
	if answered {
		m.full.Store(full)
	}
	switch full = m.full.Load(); {
	case full && !m.loggedFull:
		m.log.Error().Msg("etcd is full (alarm NOSPACE): changes are refused until there is room and the alarm is " +
			"disarmed; reads go on")
	case !full && m.loggedFull:
		m.log.Info().Msg("etcd takes changes again: the alarm NOSPACE is off")
	}
	m.loggedFull = full
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

// puts reports whether operations put a key. Of a transaction's branches only the first
// ever does.
func puts(ops []*etcdserverpb.RequestOp) bool {
	for _, op := range ops {
		if op.GetRequestPut() != nil || puts(op.GetRequestTxn().GetSuccess()) {
			return true
		}
	}
	return false
}

// opsPut reports whether operations of etcd's client put a key, as puts does.
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
