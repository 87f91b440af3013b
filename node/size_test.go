package node

import (
	"testing"
	"time"
	"unsafe"

	"licet/licensing"
	"licet/node/store"
)

// TestCallSize bounds a call: each activation allocates one, and collecting the garbage is a good part of its time.
func TestCallSize(t *testing.T) {
	if size := unsafe.Sizeof(call{}); size > 1136 {
		t.Errorf("a call takes %d bytes, want at most 1,136", size)
	}
}

// TestNewDevicesAreNotCopied: the node notices without a copy of the license that a call binds a device, as the first
// call of each license that the node does not remember. The one allocation is the list of such calls.
func TestNewDevicesAreNotCopied(t *testing.T) {
	n := stateNode(nil)
	snapshot := store.Snapshot{Record: licensing.Record{
		License: &licensing.License{MaxDevices: 3, CreatedAt: time.Now().UTC()},
		Devices: licensing.Devices{"new": {Device: licensing.Device{ID: "new"}}},
	}}
	calls := []*call{{cmd: licensing.Activate{Device: "new"}}}
	at, err := n.timeOfTurn()
	if err != nil {
		t.Fatal(err)
	}
	var rest []*call
	if got := testing.AllocsPerRun(100, func() { rest = n.answerUnchanging(&snapshot, calls, &at, true) }); got > 1 {
		t.Errorf("%v allocations, want at most 1", got)
	}
	if len(rest) != 1 || snapshot.Record.License.CurrentDevices != 0 {
		t.Errorf("%d calls are left, and the license has %d devices", len(rest), snapshot.Record.License.CurrentDevices)
	}
}

// roomy is a store with space. The tests ask it for nothing else.
type roomy struct{ store.Queries }

func (roomy) Space() store.Space { return store.SpaceFree }

// TestOneCallIsNotCopied: a bound device activates again, on a node that has just read the license, without a copy of
// the record. A read that no fold follows answers the call by itself.
func TestOneCallIsNotCopied(t *testing.T) {
	n := stateNode(nil)
	n.cfg.Queries = roomy{}
	now := time.Now().UTC()
	bound := licensing.Device{ID: "bound", BoundAt: now, LastSeenAt: now.Add(time.Hour)}
	snapshot := &store.Snapshot{Record: licensing.Record{
		License: &licensing.License{MaxDevices: 3, CurrentDevices: 1, CreatedAt: now},
		Devices: licensing.Devices{"bound": {Device: bound, Bound: true}},
	}}
	one := &call{cmd: licensing.Activate{Device: "bound", SeenStep: time.Minute}}
	one.state.Store(callTaken)
	calls := []*call{one}
	at, err := n.timeOfTurn()
	if err != nil {
		t.Fatal(err)
	}
	var rest []*call
	var fold foldResult
	if got := testing.AllocsPerRun(100, func() {
		rest = n.answerUnchanging(snapshot, calls, &at, true)
		fold = n.fold(licensing.Ref{}, snapshot, rest, &at)
	}); got != 0 {
		t.Errorf("%v allocations, want none", got)
	}
	if got := one.outcome; got.Err != nil || got.Result.Bound || got.Result.Device != bound || fold.worthSwap {
		t.Errorf("the fold has the outcome %+v", got)
	}
	if rest = n.answerUnchanging(snapshot, calls, &at, false); len(rest) != 0 || one.state.Load() != callAnswered {
		t.Errorf("%d calls are left", len(rest))
	}
}
