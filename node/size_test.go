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
	if size := unsafe.Sizeof(call{}); size > 1216 {
		t.Errorf("a call takes %d bytes, want at most 1,216", size)
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
	if got := testing.AllocsPerRun(100, func() { rest = n.answerUnchanging(&snapshot, calls, &at) }); got > 1 {
		t.Errorf("%v allocations, want at most 1", got)
	}
	if len(rest) != 1 || snapshot.Record.License.CurrentDevices != 0 {
		t.Errorf("%d calls are left, and the license has %d devices", len(rest), snapshot.Record.License.CurrentDevices)
	}
}
